"""`twinsieve pairs`: for each pair of pages, the verdict on b if a were the only earlier page.

How: a decider decides both pages of a pair and retracts them again. Each pair meets an empty index, and the rule is
that of a stream.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import click
import msgspec

from dedup_service._native import HostText, score_of
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import distance_between, entry_of_page
from dedup_service.core.decision.entry_store import HeldEntries, HeldValues
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.nearest import nearest
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import host_hash, url_hash
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    COLUMNS,
    PROFILE,
    SPACE,
    preparer_from,
    rule_from,
    space_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import BadRecords, OutputFile, check_distinct, check_writable
from dedup_service.interfaces.cli.support.page_stream import iter_prepared, prepared_by_id
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.runtime.readers.open import InputOptions, open_source
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.resources import build_fingerprinter


class PairLine(msgspec.Struct, frozen=True):
    """A line of PAIRS; other keys are ignored."""

    a: str
    b: str


_decoder = msgspec.json.Decoder(PairLine)


class Comparer:
    """Decides pairs by a rule, each in an empty index."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self._rule, self._space_id = rule, space_id
        self._decider = self._empty()
        self._hosts: set[int] = set()
        self._pages: dict[int, PreparedPage] = {}

    def name(self, sequence: int) -> tuple[str, str]:
        """Return id and URL of a page of the pair."""
        page = self._pages[sequence].page
        return page.id, page.url

    def compare(self, a: PreparedPage, b: PreparedPage) -> dict[str, Any]:
        """Return verdict, score, distances and reason of `b` as if it followed `a`."""
        hosts = {host_hash(page.page.canonical_url) for page in (a, b)}
        if not hosts.isdisjoint(self._hosts):  # a retraction does not take back what a host is known to repeat
            self._decider, self._hosts = self._empty(), set()
        self._hosts |= hosts
        first = max(self._pages, default=0) + 1
        self._pages = {first: a, first + 1: b}
        decisions = [self._decider.decide(sequence, page) for sequence, page in self._pages.items()]
        second = decisions[1]
        for decision in decisions:
            if decision.kept and decision.verdict.sequence != second.replaces:
                self._decider.retract(decision.verdict.sequence)
        distance = distance_between(a.fingerprint, b.fingerprint)
        verdict = second.verdict
        return {
            "verdict": verdict.kind.value,
            "score": self._score(a, b) if verdict.score is None else verdict.score,
            "distance": {"words": distance.words, "body": distance.body},
            "reason": verdict.reason,
        }

    def _score(self, a: PreparedPage, b: PreparedPage) -> float | None:
        """Return the similarity of pages that do not match, as the rule measures it."""
        if self._rule.verified and a.evidence and b.evidence:
            return round(Similarity(Evidence(a.evidence), Evidence(b.evidence)).jaccard, 4)
        distance = distance_between(a.fingerprint, b.fingerprint)
        return score_of(distance.words, distance.body)

    def _empty(self) -> Decider:
        decider = Decider(self._rule, self._space_id, self)
        decider.set_guards(NO_GUARDS)  # guards count matches in a stream; pairs are not one
        return decider


@click.command("pairs", cls=GroupedCommand, epilog="pages.jsonl pairs.jsonl --profile precise")
@click.argument("pages", metavar="PAGES")
@click.argument("pairs", metavar="[PAIRS]", required=False)
@click.option(
    "--nearest", is_flag=True, help="Instead of PAIRS, compare each page with the nearest other one, however far it is."
)
@click.option(
    "--output",
    "-o",
    metavar="FILE|-",
    default="-",
    help="Write one line of JSON for each pair. [default: -, standard output]",
)
@with_options(PROFILE, SPACE, COLUMNS)
def pairs_command(pages: str, pairs: str | None, **options: Any) -> int:
    """Compare pairs of pages.

    PAGES is a file or folder, as `filter` reads it. PAIRS has one line of JSON for each pair: `{"a": id,
    "b": id}`. With --nearest, each page is b, and a the page nearest to it: the time grows with the square of
    their number.

    Each pair gets the verdict on b as if it followed a in an empty index, with both distances (in bits) and
    a score from 0 to 1. The pages that are compared are held in memory, without their texts.
    """
    if options["nearest"] is (pairs is not None):
        raise click.UsageError("say which pages to compare: give one of PAIRS and --nearest")
    check_distinct(PAGES=pages, PAIRS=pairs, **{"--output": options["output"]})
    check_writable(**{"--output": options["output"]})
    space = space_from(options)
    rule = rule_from(options) or rule_for()
    with Interrupt() as interrupt, ExitStack() as stack:
        bad = BadRecords(pages if pairs is None else f"{pages}, {pairs}", None)
        stack.callback(bad.close)
        read = InputOptions(wait=interrupt.wait, columns=options["columns"])
        comparer = Comparer(rule, build_fingerprinter(space).space_id)
        if pairs is None:
            preparer = stack.enter_context(preparer_from(options, space, keep_text=False))
            found = [page for _, page in iter_prepared(pages, preparer, bad, interrupt.stopped, read)]
            output = stack.enter_context(OutputFile(options["output"]))
            for a, b in _nearest(found, interrupt.stopped):
                output.write([_line(a, b, comparer)])
            return interrupt.code or (ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE)
        rows = list(_read_pairs(pairs, bad, InputOptions(wait=interrupt.wait)))
        if interrupt.stopped():
            return interrupt.code or ExitCode.DONE
        preparer = stack.enter_context(preparer_from(options, space, keep_text=False))
        named = {name for _, pair in rows for name in (pair.a, pair.b)}
        prepared = prepared_by_id(pages, named, preparer, bad, interrupt.stopped, read)
        output = stack.enter_context(OutputFile(options["output"]))
        _compare(rows, prepared, comparer, output, bad, interrupt.stopped)
    return interrupt.code or (ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE)


def _read_pairs(name: str, bad: BadRecords, read: InputOptions) -> Iterator[tuple[Record, PairLine]]:
    with open_source(name, read) as source:
        for record in source.records:
            if record is None:
                continue
            try:
                yield record, _decoder.decode(record.raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                bad.report([(record, f"not a pair as JSON: {error}")])


def _compare(
    rows: list[tuple[Record, PairLine]],
    prepared: Mapping[str, PreparedPage],
    comparer: Comparer,
    output: OutputFile,
    bad: BadRecords,
    stopped: Callable[[], bool],
) -> None:
    for record, pair in rows:
        if stopped():
            return
        unknown = sorted({pair.a, pair.b} - prepared.keys())
        if unknown:
            bad.report([(record, f"PAGES has no page with id {', '.join(map(repr, unknown))}")])
            continue
        output.write([_line(prepared[pair.a], prepared[pair.b], comparer)])


def _nearest(pages: Sequence[PreparedPage], stopped: Callable[[], bool]) -> Iterator[tuple[PreparedPage, PreparedPage]]:
    """Yield each page, as the second of a pair, with the nearest other one."""
    entries = tuple(entry_of_page(at, page, url_hash(page.page.canonical_url)) for at, page in enumerate(pages))
    held, none_known = HeldEntries((HeldValues(entries),)), HostText()
    for page, entry in zip(pages, entries, strict=True):
        for other in () if stopped() else nearest(held, entry, 1, none_known):
            yield pages[other.sequence], page


def _line(a: PreparedPage, b: PreparedPage, comparer: Comparer) -> bytes:
    return msgspec.json.encode({"a": a.page.id, "b": b.page.id, **comparer.compare(a, b)}) + b"\n"
