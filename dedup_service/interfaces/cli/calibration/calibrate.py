"""`twinsieve calibrate`: choose thresholds on labelled pairs that reach a requested precision.

All results go to one folder; those of an earlier run are removed from it first.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.evaluation.calibration import Calibration, moved_bound, tightened
from dedup_service.core.evaluation.scoring import LabelledPair, half_of
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES, profile_text
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.calibration.measured_pairs import RULE, THRESHOLD, PairMeasurer, calibrated
from dedup_service.interfaces.cli.calibration.report import as_dict, not_reached, profile_heading, show
from dedup_service.interfaces.cli.calibration.truth_files import read_truth
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import SPACE, preparer_from, space_from, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.page_stream import prepared_by_id
from dedup_service.runtime.resources import build_fingerprinter, profile_named

REPORT, PROFILE = "calibration.json", "profile.toml"
PLOTS = ("precision_recall.png", "precision_recall.svg", "distances.png", "distances.svg")


class NotReachedError(TwinsieveError):
    """No rule of the family reaches the precision. Request a lower one, or start from a stricter profile."""


@click.command("calibrate", cls=GroupedCommand, epilog="pages.jsonl labels.jsonl --precision .995 -o calibration")
@click.argument("pages", metavar="PAGES")
@click.argument("pairs", metavar="PAIRS", type=click.Path(path_type=Path))
@click.option(
    "--precision",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="Requested precision on PAIRS: the share of flags that are right.",
)
@click.option(
    "--confident",
    is_flag=True,
    help="Require that the lower end of the precision's 95% interval reaches --precision, not only the value.",
)
@click.option(
    "--half",
    metavar="0|1",
    type=click.IntRange(0, 1),
    help="Use one half of PAIRS, split by connected pages: choose on 0, report on 1. [default: all pairs]",
)
@click.option(
    "--profile",
    metavar="NAME|FILE",
    default=DEFAULT_PROFILE,
    show_default=True,
    help=f"Rule table to tighten or loosen: {', '.join(name for name in PROFILES if PROFILES[name].verified)}, "
    "or the path of a profile file.",
)
@click.option(
    "--output",
    "-o",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default="calibration",
    show_default=True,
    help="Write the report, the profile and the plots to this folder.",
)
@click.option("--no-plots", is_flag=True, help="Draw no plots, which need the extra `plots`.")
@with_options(SPACE)
def calibrate_command(pages: str, pairs: Path, **options: Any) -> int:
    """Choose the thresholds with the highest recall that reach a precision on labelled pairs.

    From 200 labels on, the score is fitted to them, too: a factor for each of its quantities, or from 1,000 labels on
    all of its points.

    PAGES is a file or folder, as `filter` reads it. PAIRS has lines of `{"a", "b", "label"}`, as `label`
    writes them. Labels are `dup` and `not`; any other label is shown and not scored.

    FOLDER gets calibration.json, profile.toml (for --profile of other commands), and curves and histograms
    as PNG and SVG. The exit code is 1 if no rule reaches the precision.
    """
    draw = None if options["no_plots"] else _plotter()
    known, base, space = _labelled(pairs, options["half"]), profile_named(options["profile"]), space_from(options)
    measurer = PairMeasurer(base, build_fingerprinter(space).space_id)
    folder = _empty_folder(options["output"])
    bad = BadRecords(pages, None)
    with preparer_from(options, space, keep_text=False) as preparer:
        prepared = prepared_by_id(pages, {name for pair in known for name in (pair.a, pair.b)}, preparer, bad)
    found = [pair for pair in known if pair.a in prepared and pair.b in prepared]
    missing = [pair for pair in known if pair.a not in prepared or pair.b not in prepared]
    if missing:
        left_out = f"{len(missing)} pairs of {pairs} are left out: {pages} lacks a page of each"
        click.echo(f"twinsieve: {left_out}; the first is {missing[0].a!r} and {missing[0].b!r}", err=True)
    rule, calibration = calibrated(found, prepared, measurer, options["precision"], confident=options["confident"])
    run = {"pages": pages, "pairs": str(pairs), "half": options["half"], "profile": options["profile"]}
    run |= {"moved": moved_bound(base), "left_out": len(missing)}
    run |= {"fitted": THRESHOLD if rule.card == base.card else list(calibration.left_out)[-1]}
    run |= {"space": measurer.space_id, "version": version("twinsieve")}
    (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(run | as_dict(calibration))) + b"\n")
    if draw is not None:
        draw(calibration, folder)
    show(calibration, run)
    _write_profile(folder, calibration, rule, run)
    return ExitCode.BAD_RECORDS if bad.count or missing else ExitCode.DONE


def _plotter() -> Callable[[Calibration, Path], None]:
    """Return the plotting function. Raises ModuleNotFoundError, before any work, without the extra."""
    from dedup_service.interfaces.cli.calibration.plots import draw_calibration

    return draw_calibration


def _labelled(path: Path, half: int | None) -> list[LabelledPair]:
    """Return the labelled pairs of the half. Raises ConfigurationError if the file is about pages."""
    rows = [row for row in read_truth(path) if isinstance(row, LabelledPair)]
    if not rows:
        raise ConfigurationError(f'{path} has lines about pages; calibrate takes pairs, {{"a", "b", "label"}}')
    return [row for row in rows if half is None or half_of(row.component) == half]


def _empty_folder(folder: Path) -> Path:
    """Create the folder, and remove the results of an earlier run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    for name in (REPORT, PROFILE, *PLOTS):
        (folder / name).unlink(missing_ok=True)
    return folder


def _write_profile(folder: Path, calibration: Calibration, rule: MatchRule, run: Mapping[str, object]) -> None:
    """Write the chosen rule and print the next steps. Raises NotReachedError if no rule was chosen."""
    chosen = calibration.chosen(RULE)
    if chosen is None:
        raise NotReachedError(not_reached(calibration))
    path = folder / PROFILE
    path.write_text(
        profile_heading(calibration, run) + profile_text(tightened(rule, chosen.threshold)), encoding="utf-8"
    )
    click.echo(f"Use it: --profile {path}")
    if run["half"] is not None:
        other = 1 - int(str(run["half"]))
        click.echo(f"Report it: twinsieve evaluate {run['pages']} {run['pairs']} --half {other} --profile {path}")
