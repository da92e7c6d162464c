"""Report a calibration: as JSON values, as a table, and as the heading of a profile file."""

import math
from collections.abc import Mapping
from typing import Any

from dedup_service.core.evaluation.calibration import Calibration, Curve, Point, flags_needed
from dedup_service.core.evaluation.share import Share
from dedup_service.interfaces.cli.calibration.measured_pairs import BODY, RULE, THRESHOLD, WORDS


def as_dict(calibration: Calibration) -> dict[str, Any]:
    """Return the whole calibration as JSON values."""
    duplicates, others, grey = calibration.counts
    return {
        "precision_asked": calibration.precision,
        "confident": calibration.confident,
        "flags_that_could_show_it": flags_needed(calibration.precision),
        "pairs": {"duplicates": duplicates, "others": others, "grey": grey},
        "cross_validated": {
            "source": calibration.sources[0],
            "folds": calibration.sources[1],
            "found": {way: _point(point) for way, point in calibration.left_out.items()},
        },
        "channels": {curve.channel.name: _channel(calibration, curve) for curve in calibration.curves},
    }


def _channel(calibration: Calibration, curve: Curve) -> dict[str, Any]:
    chosen = calibration.chosen(curve.channel.name)
    return {
        "flags": "at or above the threshold" if curve.channel.at_least else "at or below the threshold",
        "chosen": None if chosen is None else _point(chosen) | _bounds(chosen),
        "curve": [_point(point) for point in curve.points],
        "histogram": {
            "first_flagged_at": [*curve.channel.thresholds, None],
            "duplicates": curve.duplicates,
            "others": curve.others,
            "grey": curve.grey,
        },
    }


def _point(point: Point) -> dict[str, Any]:
    counts = {"right": point.right, "wrong": point.wrong, "missed": point.missed, "grey": point.grey}
    shares = {"precision": _plain(point.precision.value), "recall": _plain(point.recall.value)}
    return {"threshold": _plain(point.threshold), **shares, **counts}


def _bounds(point: Point) -> dict[str, Any]:
    intervals = {"precision": point.precision.interval, "recall": point.recall.interval}
    return {"interval": {name: [_plain(low), _plain(high)] for name, (low, high) in intervals.items()}}


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def show(calibration: Calibration, run: Mapping[str, object]) -> None:
    """Print what each rule that can be used finds: the profile as it is, the one that is written (→), distance alone.

    run: what was calibrated, as in the report.
    """
    from rich.console import Console
    from rich.table import Table

    duplicates, others, grey = calibration.counts
    console = Console(markup=False, highlight=False)
    title = (
        f"precision ≥ {calibration.precision:g} on {duplicates} duplicates and {others} others ({grey} grey not scored)"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("rule", "precision (95%)", "right", "recall (95%)", "grey"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    chosen = calibration.chosen(RULE)
    is_changed = chosen is not None and (chosen.threshold != 0 or run["fitted"] != THRESHOLD)
    if calibration.as_it_is is not None:
        mark = "" if is_changed or chosen is None else "→ "
        table.add_row(*_cells(f"{mark}{run['profile']}, as it is", calibration.as_it_is, grey))
    if chosen is not None and is_changed:
        table.add_row(*_cells(f"→ {_written(chosen, run)}", chosen, grey))
    for way, found in calibration.left_out.items() if calibration.sources[1] > 1 else ():
        table.add_row(*_cells(f"{way}, left out", found, grey))
    for name in (WORDS.name, BODY.name):
        of_distance = calibration.chosen(name)
        if of_distance is not None:
            table.add_row(*_cells(f"{name}:{of_distance.threshold:.0f}", of_distance, grey))
    console.print(table)
    for line in _remarks(calibration):
        console.print(line)


def _written(chosen: Point, run: Mapping[str, object]) -> str:
    """Return what was changed of the profile."""
    fitted = "" if run["fitted"] == THRESHOLD else f", {run['fitted']}"
    return f"{run['moved']} {chosen.threshold:+g}{fitted}"


def _cells(name: str, chosen: Point, grey: int) -> list[str]:
    return [
        name,
        _with_interval(chosen.precision),
        f"{chosen.right}/{chosen.precision.total}",
        _with_interval(chosen.recall),
        f"{chosen.grey}/{grey}",
    ]


def _with_interval(share: Share) -> str:
    low, high = share.interval
    return " ".join(text.replace("0.", ".") for text in (f"{share.value:.3f}", f"({low:.3f}-{high:.3f})"))


def _remarks(calibration: Calibration) -> list[str]:
    other = "Figures are optimistic on the pairs that the thresholds were chosen on: report them on other pairs."
    chosen = calibration.chosen(RULE)
    if chosen is None or chosen.precision.interval[0] >= calibration.precision:
        return [other]
    low, high = chosen.precision.interval
    needed = f"{calibration.precision:g}, at least {flags_needed(calibration.precision)} flags are needed"
    shown = f"{chosen.precision.total} flags only show that its precision lies between {low:.3f} and {high:.3f}"
    return [f"→ {shown}; to show {needed}, all of them right.", other]


def not_reached(calibration: Calibration) -> str:
    """Return the message that no rule reaches the precision, with the rule that comes nearest."""
    points = [point for point in calibration.curve(RULE).points if point.right]
    confident = "confidently " if calibration.confident else ""
    problem = f"no rule of this family {confident}reaches a precision of {calibration.precision:g} on these pairs"
    if not points:
        return f"{problem}: no offset flags a duplicate. No profile was written; check the labels"
    best = max(
        points, key=lambda point: point.precision.interval[0] if calibration.confident else point.precision.value
    )
    return (
        f"{problem}: at most {_with_interval(best.precision)}, {best.right} of {best.precision.total} flags, with "
        f"recall {_with_interval(best.recall)} at {best.threshold:+g}. No profile was written; request a lower "
        f"precision, {'label more pairs' if calibration.confident else 'or start from a stricter --profile'}"
    )


def profile_heading(calibration: Calibration, run: Mapping[str, object]) -> str:
    """Return the comment at the top of a profile file: the data it was chosen on, and its figures there."""
    chosen = calibration.chosen(RULE)
    if chosen is None:
        return ""
    duplicates, others, _ = calibration.counts
    half = "" if run["half"] is None else f", half {run['half']}"
    return (
        f"# twinsieve calibrate --precision {calibration.precision:g}: "
        f"{_written(chosen, run)} in the rows of {str(run['profile'])!r}\n"
        f"# On {duplicates} duplicates and {others} others{half}: precision {_with_interval(chosen.precision)}, "
        f"recall {_with_interval(chosen.recall)}.\n{_left_out(calibration, str(run['fitted']))}\n"
    )


def _left_out(calibration: Calibration, way: str) -> str:
    source, folds = calibration.sources
    if folds < 2:
        return ""
    found = calibration.left_out[way]
    return (
        f"# Left out, each {source} in one of {folds} folds: precision {_with_interval(found.precision)}, "
        f"recall {_with_interval(found.recall)}.\n"
    )
