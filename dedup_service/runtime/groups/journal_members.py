"""Pages of an embedded journal for groups, in one pass over it beside its kept pages.

The journal has the evidence of pages without an entry, and of the youngest kept pages; that of the others is with the
kept pages in `pages/`, which are read beside it in the same order. Nothing is locked and nothing is written; another
process may go on with the state. The pass is one read transaction, so that it sees the state of one moment.

When a page came is known by the hour (table `hour`), or by the minute if pages expire by age (table `time`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.groups.member import Removal
from dedup_service.runtime.embedded.base_labels import BaseLabel
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.filter import FilterView
from dedup_service.runtime.embedded.folder import FolderKind, refuse_other_kind
from dedup_service.runtime.embedded.journal_reader import (
    VERDICT_COLUMNS,
    VERDICTS,
    JournalReader,
    text_of,
    verdict_of,
)
from dedup_service.runtime.embedded.state_view import StateView, state_view
from dedup_service.runtime.groups.spool import GroupSpool, Progress

_COLUMNS = (
    f"{VERDICT_COLUMNS}, page.canonical_url, page.title, page.removes, page.entry, page.published, page.text_percent"
)
_SELECT = (
    f"SELECT {_COLUMNS}, evidence.evidence "  # noqa: S608 - our own column names
    f"FROM {VERDICTS} LEFT JOIN evidence ON evidence.sequence = page.sequence"
)
_PAGES = f"{_SELECT} WHERE page.kind = 'page' AND page.sequence > ? AND page.sequence <= ? ORDER BY page.sequence"
_OF_GROUP = (
    f"{_SELECT} WHERE page.kind = 'page' AND page.sequence >= ?1 AND (page.sequence = ?1 OR page.repeats = ?1) "
    "ORDER BY page.sequence LIMIT ?2"
)
_REMOVED_BY = "SELECT kind FROM log WHERE removes = ?"
_PAGES_AT_ONCE = 1 << 13
_REMOVED = "SELECT removes, kind FROM log WHERE kind <> 'page' AND kind IN ('retraction', 'correction') AND removes > 0"
_HOURS = "SELECT sequence, hour FROM hour ORDER BY sequence, hour"
_REMOVALS = {"retraction": Removal.RETRACTION, "correction": Removal.CORRECTION, "page": Removal.UPDATE}
"""What removed an entry, by the kind of the record that did."""

_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000


def spool_state(folder: str | Path, spool: GroupSpool, progress: Progress) -> int:
    """Add the pages of the state `folder` to `spool`, with the hosts' own text at its end.

    progress: (sequence, last sequence). Return the sequence up to which records of pages without an entry were
    deleted, 0 if none were. Raises StateError if the folder has no state, ForeignStateError if it is of another
    version or of the Kafka service.
    """
    path = Path(folder)
    refuse_other_kind(path, FolderKind.EMBEDDED)
    with state_view(path) as view:
        log = JournalReader(view.database, view.header.space_id)
        for sequence, kind in view.database.rows(_REMOVED):
            spool.remove(sequence, _REMOVALS[kind])
        evidence_of, clock = _KeptEvidence(view).of, _Clock(view.database, log)
        last, bases = log.last_sequence(), log.bases
        for row in _rows(view.database, _PAGES, last, progress):
            _add(spool, row, view.header.space_id, evidence_of, clock.at(row[0]), bases)
        spool.host_text = view.host_text()
        return log.deleted_up_to()


def spool_group(view: FilterView, space_id: str, group: int, spool: GroupSpool, max_pages: int) -> bool:
    """Add the pages of one group of an open filter to `spool`, at most `max_pages`; return whether there are more.

    The journal has no index by group, so it is read from the first page of the group on: about 1 s for a million pages
    where the system has it in memory.
    """
    with view.reading() as database:
        log = JournalReader(database, space_id)
        clock, bases, select = _Clock(database, log), log.bases, _OF_GROUP
        rows = [(row, clock.at(row[0])) for row in database.rows(select, group, max_pages + 1)]
        kinds = [kind for (kind,) in database.rows(_REMOVED_BY, group)]
    for kind in kinds:
        spool.remove(group, _REMOVALS[kind])
    for row, logged_ms in rows[:max_pages]:
        _add(spool, row, space_id, partial(_evidence_in, view), logged_ms, bases)
    spool.host_text = view.host_text()
    return len(rows) > max_pages


def _evidence_in(view: FilterView, sequence: int) -> bytes | None:
    entry = view.entry(sequence)
    return None if entry is None else entry.evidence


def _rows(database: Database, select: str, last: int, progress: Progress) -> Iterator[tuple[Any, ...]]:
    for start in range(-1, last, _PAGES_AT_ONCE):
        yield from database.rows(select, start, start + _PAGES_AT_ONCE)
        progress(min(last, start + _PAGES_AT_ONCE), last)


def _add(
    spool: GroupSpool,
    row: tuple[Any, ...],
    space_id: str,
    evidence_of: Callable[[int], bytes | None],
    logged_ms: int | None,
    bases: Sequence[BaseLabel],
) -> None:
    """Add a row of _COLUMNS. evidence_of: of a kept page, if the journal has none. bases: of the journal."""
    *judged, canonical, title, removes, entry, published, text_percent, packed = row
    verdict, original = verdict_of(tuple(judged), space_id, bases), judged[-1]
    if packed is None and entry is not None:
        packed = evidence_of(verdict.sequence)
    evidence = Evidence(packed or b"")
    spool.add(
        verdict,
        verdict.url if canonical is None else text_of(canonical),
        original,
        title=text_of(title),
        published=published,
        text_percent=text_percent,
        letters=None if not packed else evidence.letters,
        sentence_count=None if not packed else evidence.sentence_count,
        sentences=evidence.sentence_values,
        logged_ms=logged_ms,
    )
    if removes is not None:
        spool.remove(removes, Removal.UPDATE)
    if canonical is None and verdict.url.endswith(f"#erased-{verdict.sequence}"):
        spool.remove(verdict.sequence, Removal.RETRACTION)


class _KeptEvidence:
    """Evidence of the kept pages of a view, asked for in ascending order."""

    def __init__(self, view: StateView) -> None:
        self._pieces = view.live_rows()
        self._found: dict[int, bytes] = {}
        self._last = -1

    def of(self, sequence: int) -> bytes | None:
        """Return the evidence of the live entry at `sequence`; None if there is none."""
        while self._last < sequence:
            piece = next(self._pieces, None)
            if piece is None:
                return self._found.get(sequence)
            if not len(piece):
                continue
            self._found = {entry.sequence: entry.evidence for entry in piece}
            self._last = piece[-1].sequence
        return self._found.get(sequence)


class _Clock:
    """When pages were logged, asked for in ascending order."""

    def __init__(self, database: Database, log: JournalReader) -> None:
        hours = ((after, hour * _HOUR_MS) for after, hour in database.rows(_HOURS))
        minutes = ((after, minute * _MINUTE_MS) for after, minute in log.times_from(0))
        self._times = merge(hours, minutes)
        self._next = next(self._times, None)
        self._now: int | None = None

    def at(self, sequence: int) -> int | None:
        """Return the time of the record at `sequence`, Unix milliseconds; None before the first that is known."""
        while self._next is not None and self._next[0] < sequence:
            self._now = self._next[1]
            self._next = next(self._times, None)
        return self._now
