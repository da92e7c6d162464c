"""What the tables and the window say of a batch of pages, found in compiled loops before the first one is decided.

The tables are probed for all pages at once (`table_answers`), and the window is compared with all of them. What that
leaves is asked for page by page: by then, entries may have been removed, so the owner passes over those, and the
sentences that are a host's own are known.

Invariant: what a page is told does not depend on the other pages of the batch.
"""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.equal_hashes import EqualRows
from dedup_service.core.decision.page_columns import KEYS_MARK, PageColumns
from dedup_service.core.decision.page_runs import FACTS, NO_POOL, CandidatePool, PagesToCompare, facts_of
from dedup_service.core.decision.table_answers import FoundHashes, ProbeBounds, TableAnswers
from dedup_service.core.decision.window import Window
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.packed import Evidence

Integers = npt.NDArray[np.int64]


class BatchProbe:
    """What was found for some pages. first: number of the present one.

    columns: of the pages, which the window has announced. answers: of the tables, which do not change until the last
    page.
    """

    def __init__(
        self, columns: PageColumns, bounds: ProbeBounds, answers: TableAnswers, window: Window, first: int = 0
    ) -> None:
        self.page = first
        """Number of the present page."""
        self._removed: list[int] = []
        self._batch, self._pages, self._window = columns, len(columns), window
        self._verified, self._min_jaccard = bounds.verified, bounds.min_jaccard
        young = window.equal(columns)
        self._urls = _Hashed(answers.urls, young.urls)
        self._claims = _Hashed(answers.claims, young.claims)
        self._texts = _Hashed(answers.texts, young.texts)
        self._bodies = _Hashed(answers.bodies, young.bodies)
        self._found, self._columns = answers.found, answers.columns
        self._candidates, self._offsets, self._cut = answers.candidates, answers.offsets, answers.cut
        marks = columns.marks
        if not (bounds.keys and all(columns.keys)):
            keyed = np.fromiter(map(bool, columns.keys), np.bool_, len(columns)) & bounds.keys
            marks = np.where(keyed, marks, marks & ~np.uint8(KEYS_MARK))
        self._compared = window.compare(marks, bounds.min_jaccard, bounds.radii)
        self._find_lone([self._urls, self._claims, self._texts, self._bodies])
        # Lists: to read one number of an array takes longer than the rest.
        self._looked_at: list[int] = (answers.looked_at + self._compared.passed).tolist()
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
        self._gone = np.zeros(len(self._found), np.bool_)
        none = np.zeros(self._pages + 1, np.int64), _NO_ROWS
        candidates, equal, pool = self._pool() if self._verified else (none, none, NO_POOL)
        for row in self._removed:
            self._mark_gone(row)
        columns = facts_of(pages.rows), pages.data, pages.starts, pages.evidence
        return PagesToCompare(*columns, self._is_alone, self._is_known, *candidates, *equal), pool

    def _pool(self) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers], CandidatePool]:
        """Return the entries that are candidates or have an equal text, and where those of each page are among them."""
        known = self._found
        several, numbers = len(known), np.arange(self._pages)
        facts = np.zeros((several, FACTS), np.int64)
        if len(known.read):
            facts[known.read] = facts_of(known.records)
        data, starts, sizes = known.spans.data, known.spans.starts[:-1], known.spans.sizes
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
        places, there = self._found.places_of(all_rows)
        of_young = np.repeat(np.array([page for page, _ in young], np.int64), [len(found) for _, found in young])
        return of_page[there], places[there], of_young, np.concatenate([_NO_ROWS, *(found for _, found in young)])

    def remove(self, row: int) -> None:
        """Take note that a row was removed."""
        self._removed.append(row)
        if "runs" in self.__dict__:
            self._mark_gone(row)

    def _mark_gone(self, row: int) -> None:
        (place,), (there,) = self._found.places_of(np.array([row]))
        if there:
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
        return self._found.has(row, name, value)

    def entry(self, row: int) -> Entry:
        """Return a live row as a value."""
        return self._found.entry(row)

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
        found: list[int] = self._found.rows[places].tolist()
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


_NO_ROWS = np.empty(0, np.int64)
_NOTHING = Hashed(0, (), _NO_ROWS)


class _Hashed:
    """What may have a hash of each page: in the tables, and in the window (young)."""

    def __init__(self, settled: FoundHashes, young: EqualRows) -> None:
        self._settled, self._young = settled, young
        self.crowded = settled.crowded
        """Pages of whose hash there are many rows in the tables."""
        self.there = {*settled.rows, *young.pages()}
        """The pages for which there is anything."""

    def value(self, page: int) -> int | None:
        """Return the hash of a page; None if it asks for none."""
        return self._settled.value(page)

    def of_page(self, page: int) -> Hashed:
        """Return what may have the hash of a page."""
        if page not in self.there:
            return _NOTHING
        return Hashed(self.value(page) or 0, self._settled.rows.get(page, ()), self._young.of_page(page))
