"""`twinsieve pairs`: what the filter would say of b, had it seen only a before.

How: both pages of a pair go through one decider in turn and are retracted again, so that each pair
meets an empty index and the rules are those of the stream, none of them written again.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click
import msgspec

from dedup_service.core.decision.decider import Decider, Decision
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.matching import score_of
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import MATCHING, SPACE, rule_of, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, OutputFile, check_distinct
from dedup_service.interfaces.cli.support.page_stream import batches
from dedup_service.runtime.readers import Record, open_source
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, Preparer

__all__ = ["Comparer", "NoNames", "pairs_command", "prepared_pages"]


class PairLine(msgspec.Struct, frozen=True):
    """The keys of a line of PAIRS that mean something; others are left alone."""

    a: str
    b: str


_decoder = msgspec.json.Decoder(PairLine)


class Comparer:
    """Decide pairs, each in an empty index."""

    def __init__(self, decider: Decider) -> None:
        decider.set_guards(NO_GUARDS)  # pairs are no stream, in which matches could become too many
        self._decider = decider
        self._sequence = 0

    def compare(self, a: PreparedPage, b: PreparedPage) -> dict[str, Any]:
        """Return verdict, score and distances of `b` as if it followed `a`."""
        first, second = self._decide(a), self._decide(b)
        for entry in (first.entry, second.entry):
            if entry is not None and entry.sequence != second.replaces:
                self._decider.retract(entry.sequence)
        distance = Entry.from_page(1, a, 0).distance_to(b.fingerprint)
        verdict = second.verdict
        return {
            "verdict": verdict.kind.value,
            "score": self._score(a, b) if verdict.score is None else verdict.score,
            "distance": {"words": distance.words, "body": distance.body},
            "reason": verdict.reason,
        }

    def _score(self, a: PreparedPage, b: PreparedPage) -> float | None:
        """How alike pages are that do not match: as the rule measures it."""
        if self._decider.rule.verified and a.evidence and b.evidence:
            return round(Similarity(Evidence(a.evidence), Evidence(b.evidence)).jaccard, 4)
        return score_of(Entry.from_page(1, a, 0).distance_to(b.fingerprint))

    def _decide(self, page: PreparedPage) -> Decision:
        self._sequence += 1
        return self._decider.decide(self._sequence, page)


class NoNames:
    """Pairs are named by their line, not by a journal."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return a name nobody reads."""
        return (str(sequence), "")


@click.command("pairs", epilog=EPILOG)
@click.argument("pages", metavar="PAGES")
@click.argument("pairs", metavar="PAIRS")
@click.option("--output", "-o", metavar="FILE|-", default="-", help="One line of JSON a pair. [default: -]")
@click.option("--errors", metavar="FILE", help="Bad records and pairs, one line of JSON each.")
@with_options(*MATCHING, *SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
def pairs_command(pages: str, pairs: str, **options: Any) -> int:
    """Compare the pages of PAGES that PAIRS names: lines of {"a": id, "b": id}.

    Each pair gets the verdict on b as if it followed a in an empty index, with distances and a score
    (0 to 1, higher is more alike). The pages named in PAIRS are held in memory, without their text.
    """
    check_distinct(PAGES=pages, PAIRS=pairs, **{"--output": options["output"], "--errors": options["errors"]})
    choice = space_of(options)
    rule = rule_of(options) or rule_for()
    decider = Decider(rule, build_fingerprinter(choice).space_id, NoNames())
    with ExitStack() as stack:
        bad = BadRecords(f"{pages}, {pairs}", options["errors"])
        stack.callback(bad.close)
        wanted = list(_read_pairs(pairs, bad))
        preparer = stack.enter_context(Preparer(choice, options["processes"]))
        prepared = prepared_pages(pages, {name for _, pair in wanted for name in (pair.a, pair.b)}, preparer, bad)
        output = stack.enter_context(OutputFile(options["output"]))
        _compare(wanted, prepared, Comparer(decider), output, bad)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _read_pairs(name: str, bad: BadRecords) -> Iterator[tuple[Record, PairLine]]:
    with open_source(name) as source:
        for record in source.records:
            if record is None:
                continue
            try:
                yield record, _decoder.decode(record.raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                bad.report([(record, f"not a pair in JSON: {error}")])


def prepared_pages(name: str, wanted: set[str], preparer: Preparer, bad: BadRecords) -> dict[str, PreparedPage]:
    """Return the pages of `wanted` by id, the first where an id comes twice."""
    found: dict[str, PreparedPage] = {}
    with open_source(name) as source:
        for batch in batches(source.records):
            for record, answer in zip(batch.records, preparer.submit(batch.records).result(), strict=True):
                if isinstance(answer, BadRecord):
                    bad.report([(record, answer.problem)])
                elif answer.page.id in wanted:
                    found.setdefault(answer.page.id, replace(answer, page=replace(answer.page, text="")))
    return found


def _compare(
    wanted: list[tuple[Record, PairLine]],
    prepared: Mapping[str, PreparedPage],
    comparer: Comparer,
    output: OutputFile,
    bad: BadRecords,
) -> None:
    for record, pair in wanted:
        unknown = sorted({pair.a, pair.b} - prepared.keys())
        if unknown:
            bad.report([(record, f"PAGES has no page with id {', '.join(map(repr, unknown))}")])
            continue
        answer = comparer.compare(prepared[pair.a], prepared[pair.b])
        output.write([msgspec.json.encode({"a": pair.a, "b": pair.b, **answer}) + b"\n"])
