"""What the tables say of a batch of pages: candidates, and the entries with equal hashes.

Tables are probed for all pages at once; the evidence of everything that was found is read together; candidates whose
sketches are too different are left out, and the rows of the others are read. `probe_tables` asks the tables in this
process. Shards answer for theirs (`core.shards`), and what they say together has the same form; rows are then named by
the sequences of their entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service._native import CROWD, HashRows
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import (
    BODY_DECIDES,
    ROW,
    TEXT_HASH,
    EvidenceSpans,
    Rows,
    entry_of,
    indexed_by,
)
from dedup_service.core.decision.entry_store import EntryStore, entries_at
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.matching import min_rough_jaccard
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.evidence.columns import EvidenceColumns, close_pairs
from dedup_service.core.index.cell_index import CellAnswers
from dedup_service.core.rules.rule import MatchRule

Integers = npt.NDArray[np.int64]

MAX_IDENTICAL = 512
"""Entries with one fingerprint, at most, the earliest: the words of a page in another order have the same one, so a
site could make any number of them."""

_AHEAD = 64
"""Rows of a crowd that are read in advance."""

NO_ROWS = np.empty(0, np.int64)
NO_COLUMNS = EvidenceColumns(0)
NO_SPANS = EvidenceSpans(np.empty(0, np.uint8), np.zeros(1, np.int64), NO_ROWS)

Pairs = tuple[Integers, Integers]
"""Numbers of pages, and a row for each: int64[m] each."""


class ProbeBounds(NamedTuple):
    """What a rule asks for. radii: of words and body; None for a channel that is not compared.

    keys: whether shared keys make candidates. verified: whether all of them have to have a Jaccard similarity of
    `min_jaccard`; else those that keys find.
    """

    radii: tuple[int | None, int | None]
    keys: bool
    verified: bool
    min_jaccard: float

    @classmethod
    def of(cls, rule: MatchRule) -> "ProbeBounds":
        """Return what a rule asks for."""
        radii = rule.radius("words"), rule.radius("body")
        return cls(radii, rule.keys, bool(rule.verified), min_rough_jaccard(rule))


@dataclass(frozen=True, slots=True, eq=False)
class FoundHashes:
    """What tables have under a hash of each page.

    values: uint64[n], where asked: bool[n], None for all. rows: by the number of the page, ascending; some may be of
    another hash.
    """

    values: npt.NDArray[Any]
    asked: npt.NDArray[np.bool_] | None
    rows: dict[int, Sequence[int]]

    def value(self, page: int) -> int | None:
        """Return the hash of a page; None if it asks for none."""
        return int(self.values[page]) if self.asked is None or self.asked[page] else None

    @property
    def crowded(self) -> list[int]:
        """Pages of whose hash there are many rows, of which only the first were read."""
        return [page for page, rows in self.rows.items() if len(rows) >= CROWD]

    @property
    def found(self) -> list[int]:
        """All rows, but for those of a crowd behind its first."""
        return [row for rows in self.rows.values() for row in rows[:_AHEAD]]


class FoundRows:
    """Rows that were read, m of them, ascending: int64[m].

    spans: their evidence. read: the places of those whose ROW was read, records: of them. store: has the others;
    None if there are no others.
    """

    def __init__(
        self, rows: Integers, spans: EvidenceSpans, read: Integers, records: Rows, store: EntryStore | None = None
    ) -> None:
        self.rows, self.spans, self.read, self.records = rows, spans, read, records
        self._store = store
        self._starts = spans.starts[read] if len(read) else NO_ROWS
        self._places = {row: place for place, row in enumerate(rows[read].tolist())} if len(read) else {}
        self._entries: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def places_of(self, rows: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return where rows are among these, and which of them are."""
        places = np.searchsorted(self.rows, rows)
        there = places < len(self.rows)
        there[there] = self.rows[places[there]] == rows[there]
        return places, there

    def has(self, row: int, name: str, value: int) -> bool:
        """Return whether a row is live and has this hash in the field `name` of ROW."""
        place = self._places.get(row)
        if place is not None:
            return int(self.records[name][place]) == value
        if self._store is None:
            return False
        one = np.array([row])
        return bool(self._store.live(one)[0]) and int(self._store.rows(one)[name][0]) == value

    def entry(self, row: int) -> Entry:
        """Return a live row as a value."""
        entry = self._entries.get(row)
        if entry is None:
            place = self._places.get(row)
            if place is not None:
                entry = entry_of(self.records.item(place), self.spans.data, self._starts.item(place), row)
            else:
                assert self._store is not None
                entry = entries_at(self._store, np.array([row]))[0]
            self._entries[row] = entry
        return entry


Hashes = tuple[FoundHashes, FoundHashes, FoundHashes, FoundHashes]
"""Of the URLs of pages, of those that they claim, of their texts and bodies."""


@dataclass(frozen=True, slots=True, eq=False)
class TableAnswers:
    """What tables say of n pages.

    found: the live rows among what was found, with their evidence in `columns`. candidates: places among them, of page
    i from offsets[i] to offsets[i + 1] - 1. urls … bodies: equal hashes; claims: of the URL that a page claims. cut:
    rows of pages that have MAX_IDENTICAL or more of one fingerprint, so that removed ones make room for others.
    looked_at: int64[n], entries that were looked at.
    """

    found: FoundRows
    columns: EvidenceColumns
    candidates: Integers
    offsets: list[int]
    urls: FoundHashes
    claims: FoundHashes
    texts: FoundHashes
    bodies: FoundHashes
    looked_at: Integers
    cut: dict[int, set[int]] = field(default_factory=dict)


def probe_tables(
    pages: PageColumns, bounds: ProbeBounds, store: EntryStore, tables: EntryTables, cells: CellAnswers
) -> TableAnswers:
    """Return what tables and store say now. cells: what `CellRows.follow` answered for the pages."""
    hashes = look_up_hashes(pages, tables)
    pairs, looked_at = cell_pairs(cells)
    cut: dict[int, set[int]] = {}
    for channel, index in tables.indexes.items():
        numbers = np.flatnonzero(indexed_by(pages.rows["flags"], channel))
        near = index.probe_many(pages.rows[channel][numbers].astype(np.uint64), most_identical=MAX_IDENTICAL)
        if not len(near.sequences):
            continue
        counts = np.diff(near.offsets)
        looked_at[numbers] += counts
        pairs.append((np.repeat(numbers, counts), near.sequences))
        for query in np.flatnonzero(counts >= MAX_IDENTICAL).tolist():
            rows = near.sequences[near.offsets[query] : near.offsets[query + 1]].tolist()
            cut.setdefault(int(numbers[query]), set()).update(rows)
    equal = [row for kind in hashes for row in kind.found]
    rows, spans, columns = read_evidence(store, pairs, equal)
    candidates, offsets = joined(pairs, rows, columns, pages.evidence.sketches, bounds)
    wanted = np.zeros(len(rows), np.bool_)
    wanted[candidates] = True
    if equal:
        places, there = FoundRows(rows, spans, NO_ROWS, _NO_RECORDS).places_of(np.array(equal, np.int64))
        wanted[places[there]] = True
    read = np.flatnonzero(wanted)  # most have neither, and each would be a read
    records = store.rows(rows[read]) if len(read) else _NO_RECORDS
    found = FoundRows(rows, spans, read, records, store)
    return TableAnswers(found, columns, candidates, offsets, *hashes, looked_at, cut)


_NO_RECORDS = np.empty(0, ROW)


def look_up_hashes(pages: PageColumns, tables: EntryTables) -> Hashes:
    """Return the rows with the hashes of pages: of their URLs, claimed URLs, texts and bodies."""
    rows, flags = pages.rows, pages.rows["flags"]
    return (
        _look_up(tables.urls, rows["url_hash"], None),
        _look_up(tables.urls, pages.claims, pages.claiming),
        _look_up(tables.texts, rows["text_hash"], (flags & TEXT_HASH) != 0),
        _look_up(tables.bodies, rows["body_hash"], (flags & BODY_DECIDES) != 0),
    )


def _look_up(table: HashRows, values: npt.NDArray[Any], asked: npt.NDArray[np.bool_] | None) -> FoundHashes:
    pages = np.arange(len(values)) if asked is None else np.flatnonzero(asked)
    found = FoundHashes(values, asked, {})
    if not len(pages):
        return found
    several = table.rows_many(values[pages].astype(np.uint64))
    if several.rows:
        offsets, rows = np.frombuffer(several.offsets, np.int64), np.frombuffer(several.rows, np.uint32)
        crowds: dict[int, list[int]] = {}  # pages of a batch share them
        for number in np.flatnonzero(offsets[1:] > offsets[:-1]).tolist():
            page, first = int(pages[number]), rows[offsets[number] : offsets[number + 1]].tolist()
            if len(first) == CROWD and (value := int(values[page])) not in crowds:
                crowds[value] = table.rows(value)
            found.rows[page] = crowds[int(values[page])] if len(first) == CROWD else first
    return found


def cell_pairs(cells: CellAnswers) -> tuple[list[Pairs], Integers]:
    """Return what the cells found, and how many entries each page was compared with: int64[n]."""
    looked_at = cells.probed.astype(np.int64)
    if not len(cells.rows):
        return [], looked_at
    return [(np.repeat(np.arange(len(looked_at)), np.diff(cells.offsets)), cells.rows.astype(np.int64))], looked_at


def read_evidence(
    store: EntryStore, pairs: Sequence[Pairs], equal: Sequence[int]
) -> tuple[Integers, EvidenceSpans, EvidenceColumns]:
    """Return the live rows among those found, ascending, and their evidence. equal: those that have an equal hash."""
    if not pairs and not equal:
        return NO_ROWS, NO_SPANS, NO_COLUMNS
    rows = np.unique(np.concatenate([*(rows for _, rows in pairs), np.array(equal, np.int64)]))
    rows = rows[store.live(rows)]
    spans = store.evidence(rows)
    return rows, spans, EvidenceColumns.of(spans.data, spans.starts[:-1], spans.sizes)


def joined(
    found: Sequence[Pairs],
    rows: Integers,
    columns: EvidenceColumns,
    sketches: npt.NDArray[np.uint64],
    bounds: ProbeBounds,
) -> tuple[Integers, list[int]]:
    """Keep the pairs of a page and a live row, each once, that may be similar.

    Returns places in `rows`, whose evidence the columns are, and where those of each page begin. sketches: of pages.
    """
    pages = len(sketches)
    if not found or not len(rows):
        return NO_ROWS, [0] * (pages + 1)
    numbers, theirs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    places = np.searchsorted(rows, theirs)
    there = places < len(rows)
    there[there] = rows[places[there]] == theirs[there]
    pairs = np.unique(numbers[there] * (len(rows) + 1) + places[there])
    numbers, places = np.divmod(pairs, len(rows) + 1)
    if bounds.verified and len(pairs):
        close = close_pairs(numbers, places, sketches, columns.sketches, columns.shingles, bounds.min_jaccard)
        numbers, places = numbers[close], places[close]
    return places, np.searchsorted(numbers, np.arange(pages + 1)).tolist()
