"""`twinsieve evaluate`: how good the verdicts on known pages are.

The verdicts are those of `filter`, or of `pairs` where TRUTH labels pairs; nothing of either is written again.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Evaluation, LabelledPair, Share, TruthRow, score_pairs, score_stream
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.cli.calibration.truth_files import read_truth
from dedup_service.interfaces.cli.commands.pairs import Comparer, NoNames, prepared_pages
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import MATCHING, SPACE, rule_of, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.page_stream import batches
from dedup_service.runtime.readers import open_source
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, Preparer

__all__ = ["evaluate_command"]

FLAGS = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})


@click.command("evaluate", epilog=EPILOG)
@click.argument("pages", metavar="PAGES")
@click.argument("truth", metavar="TRUTH", type=click.Path(path_type=Path))
@click.option("--half", type=click.IntRange(0, 1), help="Only this half, by group: choose on 0, report 1.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@with_options(*MATCHING, *SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
def evaluate_command(pages: str, truth: Path, half: int | None, *, as_json: bool, **options: Any) -> int:
    """Give PAGES their verdicts and say how many agree with TRUTH.

    TRUTH has a line for each page in the order of a crawl, {"id", "duplicate_of"}, or for each pair, {"a", "b",
    "label"}; `group`, `strength`, `operator`, `kind` and `lang` become rows of the tables. Copies of strength S4 and S5
    and re-crawls of an address are shown and not scored.
    """
    known = read_truth(truth)
    choice, rule = space_of(options), rule_of(options) or rule_for()
    bad = BadRecords(pages, None)
    with Preparer(choice, options["processes"]) as preparer:
        evaluation, absent = _evaluated(pages, known, half, choice, rule, preparer, bad)
    bad.close()
    if as_json:
        click.echo(msgspec.json.encode({**as_dict(evaluation), "absent": absent}))
    else:
        _show(evaluation)
    if absent:
        click.echo(f"{absent:,} of {len(known):,} lines of {truth} name pages that {pages} does not have", err=True)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _evaluated(
    pages: str,
    known: Sequence[TruthRow] | Sequence[LabelledPair],
    half: int | None,
    choice: SpaceOptions,
    rule: MatchRule,
    preparer: Preparer,
    bad: BadRecords,
) -> tuple[Evaluation, int]:
    """Return how good the verdicts are, and how many rows name pages that are not there: not flagged, that is."""
    space_id = build_fingerprinter(choice).space_id
    pairs = [row for row in known if isinstance(row, LabelledPair)]
    if not pairs:
        rows, stream = [row for row in known if isinstance(row, TruthRow)], Stream(rule, space_id)
        evaluation = score_stream(rows, _named(pages, stream, preparer, bad), half=half)
        return evaluation, len({row.id for row in rows}.difference(stream.ids))
    comparer = Comparer(Decider(rule, space_id, NoNames()))
    prepared = prepared_pages(pages, {name for pair in pairs for name in (pair.a, pair.b)}, preparer, bad)
    said = {}
    for pair in pairs:
        if pair.a in prepared and pair.b in prepared:
            verdict = comparer.compare(prepared[pair.a], prepared[pair.b])["verdict"]
            said[pair.a, pair.b] = VerdictKind(verdict) in FLAGS
    return score_pairs(pairs, said, half=half), sum((pair.a, pair.b) not in said for pair in pairs)


class Stream:
    """A decider in memory that names pages by their ids."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self.decider = Decider(rule, space_id, self)
        self.ids: list[str] = []

    def name(self, sequence: int) -> tuple[str, str]:
        """Return id and no URL, which nobody reads."""
        return self.ids[sequence - 1], ""


def _named(pages: str, stream: Stream, preparer: Preparer, bad: BadRecords) -> dict[str, str]:
    """Return page → the page that it was said to repeat."""
    from rich.progress import Progress

    named: dict[str, str] = {}
    with open_source(pages) as source, Progress(transient=True) as progress:
        bar = progress.add_task("deciding", total=None)
        for batch in batches(source.records):
            for record, answer in zip(batch.records, preparer.submit(batch.records).result(), strict=True):
                if isinstance(answer, BadRecord):
                    bad.report([(record, answer.problem)])
                    continue
                stream.ids.append(answer.page.id)
                verdict = stream.decider.decide(len(stream.ids), answer).verdict
                if verdict.kind in FLAGS and verdict.duplicate_of is not None:
                    named[verdict.id] = verdict.duplicate_of
            progress.advance(bar, len(batch.records))
    return named


def as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return everything as plain values."""
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
