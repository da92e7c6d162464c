"""An embedded journal as a source of explanations: of a filter that runs, or of a state folder.

A URL is looked for from the end of the log, a slice at a time: the journal has no index of URLs, since no verdict needs
one. Of a filter in memory each slice waits for its turn, so that nobody waits for the search.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import EntryArrays, HeldEntries
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.embedded.folder import FolderKind, refuse_other_kind
from dedup_service.runtime.embedded.journal import Header, Journal, read_counters, read_header
from dedup_service.runtime.embedded.journal_reader import JournalReader, name_of, text_of
from dedup_service.runtime.embedded.restore import Snapshots
from dedup_service.runtime.embedded.state import JOURNAL_FILE, SNAPSHOT_FILE
from dedup_service.runtime.embedded.texts import TextStore
from dedup_service.runtime.explain.page_source import KnownPage, RuleInForce, references_of

__all__ = ["JournalPages", "live_pages", "state_pages"]

SLICE = 20_000
"""Records that one query reads: some 20 ms."""

LETTERS = 64
"""Least letters to judge, in a state that does not say."""

_PAGE = (
    "SELECT id, url, canonical_url, title, words, body, body_hash, evidence, repeats "
    "FROM log WHERE sequence = ? AND kind = 'page'"
)
_VISIT = (
    "SELECT max(sequence) FROM log WHERE sequence > ? AND sequence <= ? AND kind = 'page' "
    "AND (url IN (?, ?) OR canonical_url IN (?, ?) OR id = ?)"
)
_POLICIES = "SELECT sequence, detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence"
_UNSIGNED = (1 << 64) - 1

Reading = Callable[[], AbstractContextManager[Database]]


class JournalPages:
    """Pages of the journal that `reading` opens.

    header: whose it is. held: asks who is kept now. slice_records: how many one query looks at.
    """

    def __init__(
        self,
        reading: Reading,
        header: Header,
        held: Callable[[], HeldEntries],
        *,
        slice_records: int = SLICE,
    ) -> None:
        self._reading = reading
        self._slice = slice_records
        self._held = held
        self._min_letters = int(header.space.get("least_letters", LETTERS))
        self.space_id = header.space_id

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a URL, or of an id; None where there is none."""
        sequence = reference if isinstance(reference, int) else self._latest(reference)
        if sequence is None or not 0 < sequence < 1 << 63:
            return None
        with self._reading() as database:
            row = database.first(_PAGE, sequence)
            verdict = JournalReader(database, self.space_id).verdict_at(sequence)
        if row is None:
            return None
        page_id, url, canonical, title, *_, original = row
        own_id, own_url = name_of(page_id, url)
        canonical_url = own_url if canonical is None else text_of(canonical)
        return KnownPage(
            id=own_id,
            url=own_url,
            canonical_url=canonical_url,
            title=text_of(title),
            entry=self._entry(sequence, canonical_url, row, verdict),
            verdict=verdict,
            original=original,
        )

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page`, which has its verdict."""
        return page

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None where the text budget has let it go."""
        with self._reading() as database:
            return TextStore(database.connection, 0, 0).get(page.sequence)

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with now."""
        return self._held()

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that was in force at the page."""
        with self._reading() as database:
            policies = database.rows(_POLICIES)
        at = [policy for policy in policies if policy[0] < page.sequence]
        if not at:
            raise StateError(f"the log has a page at {page.sequence} before any policy: restore it from a copy")
        since, detail = at[-1]
        return RuleInForce(_rule_in(detail), since, changed=_rule_in(policies[-1][1]) != _rule_in(detail))

    def corrections(self) -> list[Correction]:
        """Return all corrections, in their order."""
        with self._reading() as database:
            return JournalReader(database, self.space_id).corrections()

    def _latest(self, reference: str) -> int | None:
        names = references_of(reference)
        wanted = (names[0], names[-1], names[0], names[-1], names[0])
        with self._reading() as database:
            end = JournalReader(database, self.space_id).last_sequence()
        while end > 0:
            with self._reading() as database:
                found = database.first(_VISIT, end - self._slice, end, *wanted)
            if found is not None and found[0] is not None:
                return int(found[0])
            end -= self._slice
        return None

    def _entry(self, sequence: int, canonical_url: str, row: tuple[Any, ...], verdict: Verdict | None) -> Entry:
        words, body, body_hash, evidence = row[4:8]
        packed = evidence or b""
        # A page with letters enough may still have too little variety: then its verdict says that it was not judged.
        unjudged = verdict is not None and verdict.kind is VerdictKind.UNDECIDED and verdict.guard is None
        return Entry(
            sequence,
            _unsigned(words),
            _unsigned(body),
            _unsigned(body_hash),
            url_hash(canonical_url),
            indexed=not unjudged and Evidence(packed).letters >= self._min_letters,
            evidence=packed,
        )


def live_pages(dedup: NearDuplicateFilter) -> JournalPages:
    """Return the pages of a filter that runs; asking is never in its way."""
    view = view_of(dedup)
    with view.reading() as database:
        header = _header(database)
    return JournalPages(view.reading, header, view.held)


@contextmanager
def state_pages(folder: str | Path) -> Iterator[JournalPages]:
    """Yield the pages of the state `folder`, as they are now, also while another process writes there.

    StateError where it holds none, ForeignStateError where it is of a newer version or the Kafka service's.
    """
    path = Path(folder)
    refuse_other_kind(path, FolderKind.EMBEDDED)
    if not (path / JOURNAL_FILE).exists():
        raise StateError(f"{folder} holds no twinsieve state: there is no {JOURNAL_FILE} in it; check the path")
    database = Database(path / JOURNAL_FILE, read_only=True)
    try:

        @contextmanager
        def reading() -> Iterator[Database]:
            yield database

        with database.reading():
            header = _header(database)
            yield JournalPages(reading, header, lambda: _held(path, database, header))
    finally:
        database.close()


class _Beside:
    """What a restore asks of a journal, where somebody else may be writing it."""

    def __init__(self, database: Database, header: Header) -> None:
        self.header = header
        self.log = JournalReader(database, header.space_id)
        self.entries = read_counters(database.connection).get("entries", 0)
        self.sequence = self.log.last_sequence()


def _held(folder: Path, database: Database, header: Header) -> HeldEntries:
    beside = cast("Journal", _Beside(database, header))  # of a journal nothing else is asked
    rows = Snapshots(folder / SNAPSHOT_FILE, beside, 0).restore().rows
    return EntryArrays(rows).held()


def _header(database: Database) -> Header:
    header = read_header(database.connection, database.path)
    if header is None:
        raise StateError(f"{database.path} is empty: its first opening was cut off; delete it, or open it to write")
    return header


def _rule_in(detail: str) -> MatchRule:
    return MatchRule.from_dict(json.loads(detail)["rule"])


def _unsigned(value: int | None) -> int | None:
    return None if value is None else value & _UNSIGNED
