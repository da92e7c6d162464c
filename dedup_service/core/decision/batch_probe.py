"""What the tables and the window say of a batch of pages, found in compiled loops before the first one is decided.

Tables are probed for all pages at once; the evidence of everything that was found is read together; candidates whose
sketches are too different are left out, and the rows of the others are read. What is left is asked for page by page: by
then, entries may have been removed, so the owner passes over those, and the sentences that are a host's own are known.

Invariant: what a page is told does not depend on the other pages of the batch.
"""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import BODY_DECIDES, TEXT_HASH, entry_of, indexed_by
from dedup_service.core.decision.entry_store import EntryStore, entries_at
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.equal_hashes import EqualRows
from dedup_service.core.decision.matching import min_rough_jaccard
from dedup_service.core.decision.page_columns import KEYS_MARK, PageColumns
from dedup_service.core.decision.page_runs import FACTS, NO_POOL, CandidatePool, PagesToCompare, facts_of
from dedup_service.core.decision.window import Window
from dedup_service.core.evidence.columns import EvidenceColumns, close_pairs
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index import HashRows
from dedup_service.core.index.cell_index import CellAnswers
from dedup_service.core.index.hash_rows import CROWD
from dedup_service.core.rules.rule import MatchRule

__all__ = ["BatchProbe", "Hashed", "ProbeBounds"]

Integers = npt.NDArray[np.int64]

MAX_IDENTICAL = 512
"""Entries with one fingerprint, at most, the earliest: the words of a page in another order have the same one, so a
site could make any number of them."""

_AHEAD = 64
"""Rows of a crowd that are read in advance."""


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


class BatchProbe:
    """What was found for some pages. first: number of the present one.

    columns: of the pages, which the window has announced. store, tables: as they are now; they do not change until the
    last page. cells: what `CellRows.follow` answered for the pages.
    """

    def __init__(
        self,
        columns: PageColumns,
        bounds: ProbeBounds,
        store: EntryStore,
        tables: EntryTables,
        window: Window,
        cells: CellAnswers,
        first: int = 0,
    ) -> None:
        self.page = first
        """Number of the present page."""
        self._removed: list[int] = []
        self._batch, self._pages, self._store, self._window = columns, len(columns), store, window
        self._verified, self._min_jaccard = bounds.verified, bounds.min_jaccard
        young, rows, flags = window.equal(columns), columns.rows, columns.rows["flags"]
        self._urls = _Hashed(tables.urls, rows["url_hash"], None, young.urls)
        self._claims = _Hashed(tables.urls, columns.claims, columns.claiming, young.claims)
        self._texts = _Hashed(tables.texts, rows["text_hash"], (flags & TEXT_HASH) != 0, young.texts)
        self._bodies = _Hashed(tables.bodies, rows["body_hash"], (flags & BODY_DECIDES) != 0, young.bodies)
        hashed = [self._urls, self._claims, self._texts, self._bodies]
        found: list[tuple[Integers, Integers]] = []
        if len(cells.rows):
            numbers = np.repeat(np.arange(len(columns)), np.diff(cells.offsets))
            found.append((numbers, cells.rows.astype(np.int64)))
        looked_at = cells.probed.astype(np.int64)
        self._cut: dict[int, set[int]] = {}
        for channel, index in tables.indexes.items():
            numbers = np.flatnonzero(indexed_by(flags, channel))
            near = index.probe_many(rows[channel][numbers].astype(np.uint64), most_identical=MAX_IDENTICAL)
            if not len(near.sequences):
                continue
            counts = np.diff(near.offsets)
            looked_at[numbers] += counts
            found.append((np.repeat(numbers, counts), near.sequences))
            for query in np.flatnonzero(counts >= MAX_IDENTICAL).tolist():
                cut = near.sequences[near.offsets[query] : near.offsets[query + 1]].tolist()
                self._cut.setdefault(int(numbers[query]), set()).update(cut)
        equal = [row for table in hashed for row in table.found]
        self._read_evidence(found, equal)
        self._join(found, columns.evidence.sketches)
        self._read_rows(equal)
        marks = columns.marks
        if not (bounds.keys and all(columns.keys)):
            keyed = np.fromiter(map(bool, columns.keys), np.bool_, len(columns)) & bounds.keys
            marks = np.where(keyed, marks, marks & ~np.uint8(KEYS_MARK))
        self._compared = window.compare(marks, bounds.min_jaccard, bounds.radii)
        self._find_lone(hashed)
        # Lists: to read one number of an array takes longer than the rest.
        self._looked_at: list[int] = (looked_at + self._compared.passed).tolist()
        self._starts: list[int] = self._compared.offsets.tolist()

    def is_outdated(self, gone: Container[int]) -> bool:
        """Return whether rows that are gone since leave room for others among the MAX_IDENTICAL of the page."""
        return any(row in gone for row in self._cut.get(self.page, ()))

    @property
    def is_alone(self) -> bool:
        """Whether nothing at all was found for the page: no equal hash and no candidate."""
        return self._alone[self.page]

    @cached_property
    def runs(self) -> tuple[PagesToCompare, CandidatePool]:
        """What runs of pages need: the pages, and their candidates if there is a rule table."""
        pages = self._batch
        self._gone = np.zeros(len(self._live), np.bool_)
        none = np.zeros(self._pages + 1, np.int64), _NO_ROWS
        candidates, equal, pool = self._pool() if self._verified else (none, none, NO_POOL)
        for row in self._removed:
            self._mark_gone(row)
        columns = facts_of(pages.rows), pages.data, pages.starts, pages.evidence
        return PagesToCompare(*columns, self._is_alone, self._is_known, *candidates, *equal), pool

    def _pool(self) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers], CandidatePool]:
        """Return the entries that are candidates or have an equal text, and where those of each page are among them."""
        several, numbers = len(self._live), np.arange(self._pages)
        facts = np.zeros((several, FACTS), np.int64)
        if self._places:
            facts[self._read] = facts_of(self._records)
        data, starts, sizes = _NO_BYTES, _NO_ROWS, _NO_ROWS
        if several:
            data, starts, sizes = self._spans.data, self._spans.starts[:-1], self._spans.sizes
        columns = self._columns
        of_page, places = np.repeat(numbers, np.diff(self._offsets)), self._candidates
        of_equal, equal, of_young, young = self._equal_texts()
        compared = len(self._compared.places)
        if compared or len(young):
            shared, found, entries = self._window.pool(np.concatenate([self._compared.places, young]))
            shared = shared[:compared]
            of_page = np.concatenate([of_page, np.repeat(numbers, np.diff(self._compared.offsets))[shared]])
            places = np.concatenate([places, several + found[:compared][shared]])
            of_equal, equal = np.concatenate([of_equal, of_young]), np.concatenate([equal, several + found[compared:]])
            facts, starts = np.concatenate([facts, entries.facts]), np.concatenate([starts, len(data) + entries.starts])
            data, sizes = np.concatenate([data, entries.data]), np.concatenate([sizes, entries.sizes])
            columns = EvidenceColumns.of(data, starts, sizes)
            self._gone = np.zeros(len(facts), np.bool_)
        pool = CandidatePool(facts, np.array(data), starts, sizes, columns, self._gone)
        return _by_page(of_page, places, self._pages), _by_page(of_equal, equal, self._pages), pool

    def _equal_texts(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Return the pages with an equal text in the tables, and where it is among live rows; then of the window.

        These are the pages, and the places in the window.
        """
        pages: list[int] = []
        rows: list[int] = []
        young: list[tuple[int, Integers]] = []
        for page in np.flatnonzero(self._is_equal & ~self._is_known).tolist():
            for table in (self._texts, self._bodies):
                if page in table.there:
                    found = table.of_page(page)
                    pages += [page] * len(found.rows)
                    rows += found.rows
                    young.append((page, found.places))
        of_page, all_rows = np.array(pages, np.int64), np.array(rows, np.int64)
        places, there = self._places_of(all_rows)
        of_young = np.repeat(np.array([page for page, _ in young], np.int64), [len(found) for _, found in young])
        return of_page[there], places[there], of_young, np.concatenate([_NO_ROWS, *(found for _, found in young)])

    def _places_of(self, rows: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return where rows are among the live ones, and which of them are."""
        places = np.searchsorted(self._live, rows)
        there = places < len(self._live)
        there[there] = self._live[places[there]] == rows[there]
        return places, there

    def remove(self, row: int) -> None:
        """Take note that a row was removed."""
        self._removed.append(row)
        if "runs" in self.__dict__:
            self._mark_gone(row)

    def _mark_gone(self, row: int) -> None:
        place = int(self._live.searchsorted(row))
        if place < len(self._live) and self._live[place] == row:
            self._gone[place] = True

    def visits(self, url: int) -> "Hashed | None":
        """Return what has a URL's hash, if it is the page's own or the one that it claims; None for others."""
        for table in (self._urls, self._claims):
            if table.value(self.page) == url:
                return table.of_page(self.page)
        return None

    def texts(self) -> "Hashed":
        """Return what has the hash of the page's title and body."""
        return self._texts.of_page(self.page)

    def bodies(self) -> "Hashed":
        """Return what has the hash of the page's body; nothing for a short one."""
        return self._bodies.of_page(self.page)

    def has(self, row: int, name: str, value: int) -> bool:
        """Return whether a live row has this hash in the field `name` of ROW."""
        place = self._places.get(row)
        if place is None:
            one = np.array([row])
            return bool(self._store.live(one)[0]) and int(self._store.rows(one)[name][0]) == value
        return int(self._records[name][place]) == value

    def entry(self, row: int) -> Entry:
        """Return a live row as a value."""
        entry = self._entries.get(row)
        if entry is None:
            place = self._places.get(row)
            entry = (
                entries_at(self._store, np.array([row]))[0]
                if place is None
                else entry_of(self._records.item(place), self._spans.data, self._starts_of.item(place), row)
            )
            self._entries[row] = entry
        return entry

    @property
    def looked_at(self) -> int:
        """How many entries were looked at for the page: in tables, and in the window behind the sieve."""
        return self._looked_at[self.page]

    @property
    def has_candidates(self) -> bool:
        """Whether anything may be similar to the page."""
        page = self.page
        return self._offsets[page] < self._offsets[page + 1] or self._starts[page] < self._starts[page + 1]

    def rows(self, evidence: Evidence, common: npt.NDArray[np.uint32]) -> list[int]:
        """Return the rows that are candidates."""
        start, end = self._offsets[self.page], self._offsets[self.page + 1]
        if start == end:
            return []
        places = self._candidates[start:end]
        if self._verified:
            places = self._columns.similar(places, evidence, common, self._min_jaccard)
        found: list[int] = self._live[places].tolist()
        return found

    def places(self, evidence: Evidence, common: npt.NDArray[np.uint32]) -> list[int]:
        """Return the places of the window that are candidates."""
        compared = self._compared
        found = slice(self._starts[self.page], self._starts[self.page + 1])
        if found.start == found.stop:
            return []
        places = compared.places[found]
        if self._verified:
            similar: list[int] = self._window.similar(places, evidence, common, self._min_jaccard).tolist()
            return similar
        by_distance = compared.by_distance[found]
        others = places[compared.by_sieve[found] & ~by_distance]
        sieved = self._window.similar(others, evidence, common, self._min_jaccard)
        return sorted([*places[by_distance].tolist(), *sieved.tolist()])

    def _read_evidence(self, found: list[tuple[Integers, Integers]], equal: list[int]) -> None:
        """Read the evidence of the live rows among those found. equal: those that have an equal hash."""
        self._entries: dict[int, Entry] = {}
        if not found and not equal:
            self._live, self._columns = _NO_ROWS, _NO_COLUMNS
            return
        rows = np.unique(np.concatenate([*(rows for _, rows in found), np.array(equal, np.int64)]))
        self._live = rows[self._store.live(rows)]
        self._spans = self._store.evidence(self._live)
        self._columns = EvidenceColumns.of(self._spans.data, self._spans.starts[:-1], self._spans.sizes)

    def _read_rows(self, equal: list[int]) -> None:
        """Read the live rows that have an equal hash or are candidates: most have neither, and each would be a read."""
        self._places: dict[int, int] = {}
        """Where the rows are among those that were read."""
        wanted = np.zeros(len(self._live), np.bool_)
        wanted[self._candidates] = True
        if equal:
            rows, there = self._places_of(np.array(equal, np.int64))
            wanted[rows[there]] = True
        places = np.flatnonzero(wanted)
        if len(places):
            read = self._live[places]
            self._read, self._records, self._starts_of = places, self._store.rows(read), self._spans.starts[places]
            self._places = {row: place for place, row in enumerate(read.tolist())}

    def _join(self, found: list[tuple[Integers, Integers]], sketches: npt.NDArray[np.uint64]) -> None:
        """Keep the pairs of a page and a live row, each once, that may be similar."""
        if not found or not len(self._live):
            self._candidates, self._offsets = _NO_ROWS, [0] * (self._pages + 1)
            return
        pages, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        places, there = self._places_of(rows)
        pairs = np.unique(pages[there] * (len(self._live) + 1) + places[there])
        pages, places = np.divmod(pairs, len(self._live) + 1)
        if self._verified and len(pairs):
            close = close_pairs(
                pages, places, sketches, self._columns.sketches, self._columns.shingles, self._min_jaccard
            )
            pages, places = pages[close], places[close]
        self._candidates = places
        self._offsets = np.searchsorted(pages, np.arange(self._pages + 1)).tolist()

    def _find_lone(self, hashed: list["_Hashed"]) -> None:
        """Mark the pages for which nothing was found. A cut crowd may get other candidates, so it counts as some."""
        alone = self._compared.offsets[1:] == self._compared.offsets[:-1]
        if len(self._candidates):
            alone &= np.diff(self._offsets) == 0
        self._is_equal = np.zeros(self._pages, np.bool_)
        self._is_known = np.zeros(self._pages, np.bool_)
        self._is_equal[[*{page for table in hashed for page in table.there}.union(self._cut)]] = True
        crowds = [page for table in (self._texts, self._bodies) for page in table.crowded]
        self._is_known[[*{*self._urls.there, *self._claims.there, *self._cut, *crowds}]] = True
        self._is_alone = alone & ~self._is_equal
        self._alone: list[bool] = self._is_alone.tolist()


def _by_page(of_page: Integers, places: Integers, pages: int) -> tuple[Integers, Integers]:
    """Return the places of each page together, and where they begin: int64[pages + 1]."""
    order = np.argsort(of_page, kind="stable")
    return np.searchsorted(of_page[order], np.arange(pages + 1)), places[order]


class Hashed(NamedTuple):
    """What may have a hash of a page.

    value: the hash. rows: in the tables, ascending, some of them of another hash. places: int64[n], of the window,
    ascending.
    """

    value: int
    rows: Sequence[int]
    places: Integers


_NO_ROWS, _NO_BYTES, _NO_COLUMNS = np.empty(0, np.int64), np.empty(0, np.uint8), EvidenceColumns(0)
_NOTHING = Hashed(0, (), _NO_ROWS)


class _Hashed:
    """What may have the hashes of some pages. values: uint64[n], where asked: bool[n], None for all.

    young: what the window has of it.
    """

    def __init__(
        self, table: HashRows, values: npt.NDArray[Any], asked: npt.NDArray[np.bool_] | None, young: EqualRows
    ) -> None:
        self._values, self._asked, self._young = values, asked, young
        self._rows: dict[int, Sequence[int]] = {}
        pages = np.arange(len(values)) if asked is None else np.flatnonzero(asked)
        if len(pages):
            self._look_up(table, values, pages)
        self.there = {*self._rows, *young.pages()}
        """The pages for which there is anything."""

    def value(self, page: int) -> int | None:
        """Return the hash of a page; None if it asks for none."""
        return int(self._values[page]) if self._asked is None or self._asked[page] else None

    def _look_up(self, table: HashRows, values: npt.NDArray[Any], pages: Integers) -> None:
        """Find the rows of pages."""
        offsets, rows = table.rows_many(values[pages].astype(np.uint64))
        if not len(rows):
            return
        for number in np.flatnonzero(offsets[1:] > offsets[:-1]).tolist():
            page, found = int(pages[number]), rows[offsets[number] : offsets[number + 1]].tolist()
            self._rows[page] = table.rows(int(values[page])) if len(found) == CROWD else found

    @property
    def crowded(self) -> list[int]:
        """Pages of whose hash there are many rows, of which only the first were read."""
        return [page for page, rows in self._rows.items() if len(rows) >= CROWD]

    @property
    def found(self) -> list[int]:
        """All rows, but for those of a crowd behind its first."""
        return [row for rows in self._rows.values() for row in rows[:_AHEAD]]

    def of_page(self, page: int) -> Hashed:
        """Return what may have the hash of a page."""
        if page not in self.there:
            return _NOTHING
        return Hashed(self.value(page) or 0, self._rows.get(page, ()), self._young.of_page(page))
