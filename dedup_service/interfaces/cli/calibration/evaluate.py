"""`twinsieve evaluate`: measure precision and recall of the verdicts on pages with known answers.

The verdicts come from the code of `filter`, or of `pairs` if TRUTH labels pairs.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Evaluation, LabelledPair, TruthRow, score_pairs, score_stream
from dedup_service.core.evaluation.share import Share
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.cli.calibration.truth_files import read_truth
from dedup_service.interfaces.cli.commands.pairs import Comparer
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    PROFILE,
    SPACE,
    preparer_from,
    rule_from,
    space_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.page_stream import iter_prepared, prepared_by_id
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import Preparer

FLAGS = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})


@click.command("evaluate", cls=GroupedCommand, epilog="pages.jsonl truth.jsonl --profile precise")
@click.argument("pages", metavar="PAGES")
@click.argument("truth", metavar="TRUTH", type=click.Path(path_type=Path))
@click.option(
    "--half",
    metavar="0|1",
    type=click.IntRange(0, 1),
    help="Score one half of TRUTH, split by group: choose on 0, report on 1. [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@with_options(PROFILE, SPACE)
def evaluate_command(pages: str, truth: Path, half: int | None, *, as_json: bool, **options: Any) -> int:
    """Measure how many verdicts on PAGES agree with TRUTH.

    PAGES is a file or folder, as `filter` reads it. TRUTH has one line of JSON for each page, `{"id",
    "duplicate_of"}`, or for each pair, `{"a", "b", "label"}`. The optional keys `group`, `strength`,
    `operator`, `kind` and `lang` become rows of the tables.

    Copies of strength S4 and S5, and re-crawls of a URL, are shown and not scored.
    """
    known = read_truth(truth)
    space, rule = space_from(options), rule_from(options) or rule_for()
    bad = BadRecords(pages, None)
    with preparer_from(options, space, keep_text=False) as preparer:
        evaluation, absent = _evaluate(pages, known, half, space, rule, preparer, bad)
    bad.close()
    if as_json:
        click.echo(msgspec.json.encode({**as_dict(evaluation), "absent": absent}))
    else:
        _show(evaluation)
    if absent:
        click.echo(f"{absent:,} of {len(known):,} lines of {truth} name pages that {pages} does not have", err=True)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _evaluate(
    pages: str,
    known: Sequence[TruthRow] | Sequence[LabelledPair],
    half: int | None,
    space: SpaceOptions,
    rule: MatchRule,
    preparer: Preparer,
    bad: BadRecords,
) -> tuple[Evaluation, int]:
    """Return the evaluation, and the number of rows that name absent pages, which count as not flagged."""
    space_id = build_fingerprinter(space).space_id
    pairs = [row for row in known if isinstance(row, LabelledPair)]
    if not pairs:
        rows, stream = [row for row in known if isinstance(row, TruthRow)], Stream(rule, space_id)
        evaluation = score_stream(rows, _originals(pages, stream, preparer, bad), half=half)
        return evaluation, len({row.id for row in rows}.difference(stream.ids))
    comparer = Comparer(rule, space_id)
    prepared = prepared_by_id(pages, {name for pair in pairs for name in (pair.a, pair.b)}, preparer, bad)
    flagged = {}
    for pair in pairs:
        if pair.a in prepared and pair.b in prepared:
            verdict = comparer.compare(prepared[pair.a], prepared[pair.b])["verdict"]
            flagged[pair.a, pair.b] = VerdictKind(verdict) in FLAGS
    return score_pairs(pairs, flagged, half=half), sum((pair.a, pair.b) not in flagged for pair in pairs)


class Stream:
    """A decider in memory that names pages by their ids. ids: of all pages, in order."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self.decider = Decider(rule, space_id, self)
        self.ids: list[str] = []

    def name(self, sequence: int) -> tuple[str, str]:
        """Return the id; the URL is not needed."""
        return self.ids[sequence - 1], ""


def _originals(pages: str, stream: Stream, preparer: Preparer, bad: BadRecords) -> dict[str, str]:
    """Decide the pages in their order; return page id → id of the page that the verdict names."""
    originals: dict[str, str] = {}
    for _, prepared in iter_prepared(pages, preparer, bad):
        stream.ids.append(prepared.page.id)
        verdict = stream.decider.decide(len(stream.ids), prepared).verdict
        if verdict.kind in FLAGS and verdict.duplicate_of is not None:
            originals[verdict.id] = verdict.duplicate_of
    return originals


def as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation as JSON values."""
    names = ("precision", "recall", "f1")
    intervals = dict(zip(names, evaluation.intervals(), strict=True))
    values = {name: _plain(getattr(evaluation, name)) for name in names}
    return {
        **values,
        "intervals": {name: [_plain(low), _plain(high)] for name, (low, high) in intervals.items()},
        "right": evaluation.right,
        "wrong": evaluation.wrong,
        "missed": evaluation.missed,
        "recall_by": _counts(evaluation.recall_by),
        "false_drops_by": _counts(evaluation.drops_by),
        "not_scored": _counts(evaluation.others_by),
    }


def _counts(shares: Mapping[str, Share]) -> dict[str, dict[str, int]]:
    return {name: {"flagged": share.hits, "of": share.total} for name, share in shares.items()}


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def _show(evaluation: Evaluation) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="verdicts", title_justify="left")
    for heading in ("", "value", "95%", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    right, wrong, missed = evaluation.right, evaluation.wrong, evaluation.missed
    notes = (f"{right} of {right + wrong} flags", f"{right} of {right + missed} copies", "")
    values = (evaluation.precision, evaluation.recall, evaluation.f1)
    for name, value, (low, high), note in zip(
        ("precision", "recall", "F1"), values, evaluation.intervals(), notes, strict=True
    ):
        table.add_row(name, f"{value:.4f}", f"{low:.4f}-{high:.4f}", note)
    console.print(table)
    for title, shares, scale in (
        ("copies found", evaluation.recall_by, 1.0),
        ("false drops per 10,000", evaluation.drops_by, 1e4),
        ("not scored: flagged", evaluation.others_by, 1.0),
    ):
        if shares:
            console.print(_strata(title, shares, scale))


def _strata(title: str, shares: Mapping[str, Share], scale: float) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for heading in ("stratum", "value", "95%", "flagged", "of"):
        table.add_column(heading, justify="left" if heading == "stratum" else "right")
    digits = 4 if scale == 1.0 else 1
    for name, share in shares.items():
        low, high = share.interval
        bounds = f"{scale * low:.{digits}f}-{scale * high:.{digits}f}"
        table.add_row(name, f"{scale * share.value:.{digits}f}", bounds, f"{share.hits:,}", f"{share.total:,}")
    return table
