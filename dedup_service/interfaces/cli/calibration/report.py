"""What a calibration found: as plain values for a file, as a table for people, and in words."""

import math
from collections.abc import Mapping
from typing import Any

from dedup_service.core.evaluation.calibration import Calibration, Curve, Point, flags_needed
from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.evidence.similarity import MAX_RADIUS
from dedup_service.interfaces.cli.calibration.measured_pairs import BODY, JACCARD, RULE, WORDS

__all__ = ["TITLES", "as_dict", "heading_of", "not_reached", "show"]

TITLES = {
    WORDS.name: "words: bits apart, at most",
    BODY.name: "body: bits apart, at most",
    JACCARD.name: "estimated Jaccard, at least",
    RULE.name: "rule: added to its Jaccard bounds",
}


def as_dict(found: Calibration) -> dict[str, Any]:
    """Return everything as plain values."""
    duplicates, others, grey = found.counts
    return {
        "precision_asked": found.precision,
        "confident": found.confident,
        "flags_that_could_show_it": flags_needed(found.precision),
        "pairs": {"duplicates": duplicates, "others": others, "grey": grey},
        "channels": {curve.channel.name: _channel(found, curve) for curve in found.curves},
    }


def _channel(found: Calibration, curve: Curve) -> dict[str, Any]:
    chosen = found.chosen(curve.channel.name)
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
    return {"threshold": point.threshold, **shares, **counts}


def _bounds(point: Point) -> dict[str, Any]:
    intervals = {"precision": point.precision.interval, "recall": point.recall.interval}
    return {"interval": {name: [_plain(low), _plain(high)] for name, (low, high) in intervals.items()}}


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def show(found: Calibration) -> None:
    """Print what was chosen, and how far the pairs can show it."""
    from rich.console import Console
    from rich.table import Table

    duplicates, others, grey = found.counts
    console = Console()
    title = f"precision ≥ {found.precision:g} on {duplicates} duplicates and {others} others ({grey} grey not scored)"
    table = Table(title=title, title_justify="left")
    for heading in ("chosen", "precision (95%)", "right", "recall (95%)", "grey"):
        table.add_column(heading, justify="left" if heading == "chosen" else "right")
    for curve in found.curves:
        table.add_row(*_cells(curve.channel.name, found.chosen(curve.channel.name), grey))
    console.print(table)
    for line in _remarks(found):
        console.print(line, markup=False, highlight=False)


def _cells(name: str, chosen: Point | None, grey: int) -> list[str]:
    if chosen is None:
        return [f"{name}: none"]
    threshold = {RULE.name: f"{chosen.threshold:+.2f}", JACCARD.name: f"≥ {chosen.threshold:.2f}"}
    return [
        f"{name} {threshold.get(name, f'≤ {chosen.threshold:.0f}')}",
        _with_interval(chosen.precision),
        f"{chosen.right}/{chosen.precision.total}",
        _with_interval(chosen.recall),
        f"{chosen.grey}/{grey}",
    ]


def _with_interval(share: Share) -> str:
    low, high = share.interval
    return " ".join(text.replace("0.", ".") for text in (f"{share.value:.3f}", f"({low:.3f}-{high:.3f})"))


def _remarks(found: Calibration) -> list[str]:
    lines = []
    for name in (WORDS.name, BODY.name):
        chosen = found.chosen(name)
        if chosen is not None and chosen.threshold > MAX_RADIUS:
            lines.append(f"{name}: the index finds pages up to {MAX_RADIUS} bits apart, so --k ends there.")
    chosen = found.chosen(RULE.name)
    if chosen is not None and chosen.precision.interval[0] < found.precision:
        low, high = chosen.precision.interval
        lines.append(
            f"rule: {chosen.precision.total} flags only show that its precision lies between {low:.3f} and {high:.3f}; "
            f"to show {found.precision:g} takes at least {flags_needed(found.precision)} flags, all of them right."
        )
    lines.append("Thresholds look best on the pairs they were chosen on: report them on others.")
    return lines


def not_reached(found: Calibration) -> str:
    """Say that no rule reaches the precision, and what is the nearest to it."""
    points = [point for point in found.curve(RULE.name).points if point.right]
    confident = "confidently " if found.confident else ""
    asked = f"no rule of this family {confident}reaches a precision of {found.precision:g} on these pairs"
    if not points:
        return f"{asked}: at no offset does it flag a duplicate. No profile was written; look at the labels"
    best = max(points, key=lambda point: point.precision.interval[0] if found.confident else point.precision.value)
    return (
        f"{asked}: at most {_with_interval(best.precision)}, {best.right} of {best.precision.total} flags, with recall "
        f"{_with_interval(best.recall)} at {best.threshold:+.2f}. No profile was written; ask for less, "
        f"{'label more pairs' if found.confident else 'or begin with a stricter --profile'}"
    )


def heading_of(found: Calibration, facts: Mapping[str, object]) -> str:
    """Return the comment that a profile file begins with: what it was chosen on and what it reached there."""
    chosen = found.chosen(RULE.name)
    if chosen is None:
        return ""
    duplicates, others, _ = found.counts
    half = "" if facts["half"] is None else f", half {facts['half']}"
    return (
        f"# twinsieve calibrate --precision {found.precision:g}: {chosen.threshold:+.2f} on the Jaccard bounds of "
        f"{str(facts['profile'])!r}\n"
        f"# On {duplicates} duplicates and {others} others{half}: precision {_with_interval(chosen.precision)}, "
        f"recall {_with_interval(chosen.recall)}.\n\n"
    )
