"""`twinsieve calibrate`: thresholds from labelled pairs, for a precision that is asked for.

Everything goes into one folder, which then holds one run and nothing of an earlier one.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.evaluation.calibration import Calibration, tightened
from dedup_service.core.evaluation.scoring import LabelledPair, half_of
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES, profile_text
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.calibration.measured_pairs import RULE, PairMeasurer, curves_of
from dedup_service.interfaces.cli.calibration.report import as_dict, heading_of, not_reached, show
from dedup_service.interfaces.cli.calibration.truth_files import read_truth
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import SPACE, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.page_stream import each_prepared
from dedup_service.runtime.resources import build_fingerprinter, profile_named
from dedup_service.runtime.workers.preparation import Preparer

__all__ = ["NotReachedError", "calibrate_command"]

REPORT, PROFILE = "calibration.json", "profile.toml"
PLOTS = ("precision_recall.png", "precision_recall.svg", "distances.png", "distances.svg")


class NotReachedError(TwinsieveError):
    """No rule of the family reaches the precision asked for. Ask for less, or name a stricter profile."""


@click.command("calibrate", epilog=EPILOG)
@click.argument("pages", metavar="PAGES")
@click.argument("pairs", metavar="PAIRS", type=click.Path(path_type=Path))
@click.option(
    "--precision",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="Share of the flags on PAIRS that have to be right.",
)
@click.option("--confident", is_flag=True, help="The lower end of the 95% interval of that share has to reach it.")
@click.option("--half", type=click.IntRange(0, 1), help="Only this half, by components: choose on 0, report 1.")
@click.option(
    "--profile",
    metavar="NAME|FILE",
    default=DEFAULT_PROFILE,
    show_default=True,
    help=f"Whose table is tightened or loosened: {', '.join(name for name in PROFILES if PROFILES[name].verified)}, "
    "or a file of your own.",
)
@click.option(
    "--output",
    "-o",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default="calibration",
    show_default=True,
    help="Gets the report, the profile and the plots.",
)
@click.option("--no-plots", is_flag=True, help="No pictures, which need the extra `plots`.")
@with_options(*SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
def calibrate_command(pages: str, pairs: Path, **options: Any) -> int:
    """Choose thresholds on labelled PAIRS of PAGES that reach a precision with the highest recall.

    PAIRS has lines of {"a", "b", "label"}, as `label` stores and `evaluate` reads them: `dup`, `not`, and anything
    between, which is shown and not scored. FOLDER gets calibration.json, profile.toml for `--profile` of every command
    that decides, and curves and histograms as PNG and SVG. Exit code 1 where no rule reaches the precision.
    """
    draw = None if options["no_plots"] else _plotter()
    known, base, choice = _labelled(pairs, options["half"]), profile_named(options["profile"]), space_of(options)
    measurer = PairMeasurer(base, build_fingerprinter(choice).space_id)
    folder = _emptied(options["output"])
    bad = BadRecords(pages, None)
    with Preparer(choice, options["processes"], keep_text=False) as preparer:
        prepared = _prepared(pages, {name for pair in known for name in (pair.a, pair.b)}, preparer, bad)
    lacking = [pair for pair in known if pair.a not in prepared or pair.b not in prepared]
    if lacking:
        left_out = f"{len(lacking)} pairs of {pairs} are left out: {pages} lacks a page of each"
        click.echo(f"twinsieve: {left_out}, first of {lacking[0].a!r} and {lacking[0].b!r}", err=True)
    found = Calibration(options["precision"], curves_of(known, prepared, measurer), confident=options["confident"])
    facts = {"pages": pages, "pairs": str(pairs), "half": options["half"], "profile": options["profile"]}
    facts |= {"space": measurer.space_id, "version": version("twinsieve"), "left_out": len(lacking)}
    (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(facts | as_dict(found))) + b"\n")
    if draw is not None:
        draw(found, folder)
    show(found)
    _keep_profile(folder, found, base, facts)
    return ExitCode.BAD_RECORDS if bad.count or lacking else ExitCode.DONE


def _plotter() -> Callable[[Calibration, Path], None]:
    """Import what draws before anything is read: ModuleNotFoundError where the extra is missing."""
    from dedup_service.interfaces.cli.calibration.plots import draw_calibration

    return draw_calibration


def _labelled(path: Path, half: int | None) -> list[LabelledPair]:
    """Return the pairs of the half; ConfigurationError where the file labels pages."""
    rows = [row for row in read_truth(path) if isinstance(row, LabelledPair)]
    if not rows:
        raise ConfigurationError(f'{path} says what is known of pages; calibrate takes pairs, {{"a", "b", "label"}}')
    return [row for row in rows if half is None or half_of(row.component) == half]


def _emptied(folder: Path) -> Path:
    """Make the folder, and take out what an earlier run left there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    for name in (REPORT, PROFILE, *PLOTS):
        (folder / name).unlink(missing_ok=True)
    return folder


def _prepared(name: str, wanted: set[str], preparer: Preparer, bad: BadRecords) -> dict[str, PreparedPage]:
    """Return the pages of `wanted` by id, the first where an id comes twice."""
    found: dict[str, PreparedPage] = {}
    for _, prepared in each_prepared(name, preparer, bad):
        if prepared.page.id in wanted:
            found.setdefault(prepared.page.id, prepared)
    return found


def _keep_profile(folder: Path, found: Calibration, base: MatchRule, facts: Mapping[str, object]) -> None:
    """Write the rule that was chosen and say how to go on; NotReachedError where there is none."""
    chosen = found.chosen(RULE.name)
    if chosen is None:
        raise NotReachedError(not_reached(found))
    path = folder / PROFILE
    path.write_text(heading_of(found, facts) + profile_text(tightened(base, chosen.threshold)), encoding="utf-8")
    click.echo(f"Use it: --profile {path}")
    if facts["half"] is not None:
        other = 1 - int(str(facts["half"]))
        click.echo(f"Report it: twinsieve evaluate {facts['pages']} {facts['pairs']} --half {other} --profile {path}")
