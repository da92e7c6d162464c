"""Pages of a batch that are decided in one compiled loop, up to one that needs more than its candidates.

Of most pages nothing is found, and of most others a candidate or two. What such a page does to the entries depends on
its candidates alone: it is kept if none of them is a match, whatever the guards say of a match. So the loop compares
candidates, keeps pages, lets entries expire and learns the hosts' own text, in the order of the pages, and its owner
makes verdicts of what it found. It stops at a page that cannot be judged, may be a visit or is spoken of by a
correction, and where evidence is not as `pack_evidence` writes it; such pages are decided one by one.

Invariant: the result is what `Matcher.compare`, `Expiry` and `HostText.learn` give for one page after another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import Rows
from dedup_service.core.decision.expiry import ExpiryBounds
from dedup_service.core.decision.host_text import HostText, LearnedPages
from dedup_service.core.decision.matching import Containment, FigureChange, NearMiss
from dedup_service.core.decision.run_loop import (
    AFTER,
    BODY_HASH_AT,
    BY_AGE,
    COMPARED,
    COUNT,
    FACTS,
    FIELDS,
    FOUND_FIELDS,
    FOUND_PAGE,
    FULL,
    LEARN,
    LEARNED,
    OLDEST,
    PAGE,
    SAME,
    SEQUENCE,
    STOPPED,
    WINDOW_ROW,
    Integers,
    Mask,
    run_pages,
)
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.quantities import QUANTITIES
from dedup_service.core.rules.compiled_rows import CompiledRows
from dedup_service.core.verdict import Distance, new_distance

__all__ = [
    "FACTS",
    "FULL",
    "LEARN",
    "NO_POOL",
    "SAME",
    "STOPPED",
    "CandidatePool",
    "FoundMatch",
    "PageRun",
    "PagesToCompare",
    "RunRequest",
    "RunWindow",
    "facts_of",
    "run_on",
]

_ABOVE = 3.0
"""More than the rank of any near miss."""

_ROOM = 1024
"""Matches and near misses of a run, at least."""

_NO_BOUNDS = np.empty((0, len(QUANTITIES)))


def facts_of(rows: Rows, window_rows: Integers | int = -1) -> Integers:
    """Return the FACTS of rows, ROW[n]: int64[n, FACTS]. window_rows: those of the window that have them."""
    facts = np.empty((len(rows), FACTS), np.int64)
    for place, name in enumerate(FIELDS):
        facts[:, place] = rows[name].astype(np.int64)
    facts[:, WINDOW_ROW] = window_rows
    return facts


class CandidatePool(NamedTuple):
    """Entries that are candidates for the pages of a batch, m of them.

    facts: int64[m, FACTS]. data, starts, sizes: packed evidence: uint8[...], int64[m] each. columns: of the same
    evidence. gone: bool[m], entries that were removed since.
    """

    facts: Integers
    data: npt.NDArray[np.uint8]
    starts: Integers
    sizes: Integers
    columns: EvidenceColumns
    gone: Mask


NO_POOL = CandidatePool(
    np.empty((0, FACTS), np.int64),
    np.empty(0, np.uint8),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    EvidenceColumns(0),
    np.empty(0, np.bool_),
)


class PagesToCompare(NamedTuple):
    """Pages of a batch, n of them, and their candidates.

    facts: int64[n, FACTS]. data, starts: packed evidence: uint8[...], int64[n + 1]. columns: of the same evidence.
    alone: bool[n], nothing was found. known: bool[n], there may be a visit, so that the page is decided by itself.
    offsets, candidates: page i has those of the pool at candidates[offsets[i]:offsets[i + 1]]. equal_offsets, equal:
    the same of entries that may have the same text.
    """

    facts: Integers
    data: npt.NDArray[np.uint8]
    starts: Integers
    columns: EvidenceColumns
    alone: Mask
    known: Mask
    offsets: Integers
    candidates: Integers
    equal_offsets: Integers
    equal: Integers


@dataclass(frozen=True, slots=True, eq=False)
class RunRequest:
    """What a run depends on beside entries and candidates.

    host_text: of the hosts. learnable: all pages that were announced, and `learned`, how many of them were learned
    from. rows: the rule table, of which rows from `verified` on make no match; None if no candidates are compared.
    stops: bool[...] of these pages, those that are decided by themselves. bounds: of expiry; None without it.
    """

    host_text: HostText
    learnable: LearnedPages
    learned: int
    rows: CompiledRows | None
    verified: int
    stops: Mask
    bounds: ExpiryBounds | None


class FoundMatch(NamedTuple):
    """A match of a page. row: of the rule table, or SAME. same_title, same_body: whether they are the entry's."""

    sequence: int
    distance: Distance
    score: float
    row: int
    same_title: bool
    same_body: bool


class RunWindow(NamedTuple):
    """Where the pages of a batch are in the window.

    live: bool[rows]. row: of the first page. settled: rows before this one leave after `length` pages. first_page:
    number of the first page among those announced.
    """

    live: Mask
    row: int
    settled: int
    length: int
    first_page: int


@dataclass(frozen=True, slots=True, eq=False)
class PageRun:
    """Pages that were decided one after another, and what was found for them.

    first: number of the first one. pages: how many. kept: bool[pages]. learned: from how many announced pages was
    learned. ended: why. compared: candidates. expired: int64[m, 2], sequence, and when and why (`_expire_step`).
    found, values: as in `run_pages`, of pages and candidates with facts and pool.
    """

    first: int
    pages: int
    kept: Mask
    learned: int
    ended: int
    compared: int
    expired: Integers
    found: Integers
    values: npt.NDArray[np.float64]
    facts: Integers
    pool: CandidatePool
    verified: int

    def expirations(self) -> Iterator[tuple[int, int, bool, bool]]:
        """Yield of each entry that expired its sequence and when it did.

        That is the page, by its number in the run, whether it was after that page, and whether by age.
        """
        for sequence, when in self.expired.tolist():
            yield sequence, (when >> 2) - self.first, bool(when & AFTER), bool(when & BY_AGE)

    def outcomes(self) -> Iterator[tuple[int, FoundMatch | NearMiss]]:
        """Yield the pages, by their number in the run, that have a match or a near miss, and the best one of each."""
        best: FoundMatch | NearMiss | None = None
        latest, highest = -1, 0.0
        for record, values in zip(self.found.tolist(), self.values.tolist(), strict=True):
            if record[FOUND_PAGE] != latest:
                if best is not None:
                    yield latest - self.first, best
                best, latest = None, record[FOUND_PAGE]
            one, rank = self._outcome(record, *values)
            if best is None or rank > highest or (rank == highest and one.sequence < best.sequence):
                best, highest = one, rank
        if best is not None:
            yield latest - self.first, best

    def _outcome(self, record: list[int], jaccard: float, containment: float) -> tuple[FoundMatch | NearMiss, float]:
        """Return what was found with its rank; that of a match is above all others."""
        place, row, same_title, contains, words, body, page = record
        sequence = self.pool.facts.item(place, SEQUENCE)
        distance = new_distance(None if words < 0 else words, None if body < 0 else body)
        if row == SAME:
            same_body = self.facts.item(page, BODY_HASH_AT) == self.pool.facts.item(place, BODY_HASH_AT)
            return FoundMatch(sequence, distance, 1.0, row, bool(same_title), same_body), _ABOVE + 1.0
        if row >= self.verified:
            change = FigureChange(sequence, jaccard)
            return change, change.rank
        if row < 0:
            contained = Containment(sequence, containment, bool(contains))
            return contained, contained.rank
        score = round(jaccard, 4)
        return FoundMatch(sequence, distance, score, row, bool(same_title), False), _ABOVE + score


def run_on(
    request: RunRequest,
    pages: PagesToCompare,
    pool: CandidatePool,
    window: RunWindow,
    first: int,
    oldest: Integers,
    entries: int,
) -> PageRun:
    """Decide pages from number `first` on, as far as that goes.

    oldest: sequences of the earliest entries, which expire next: int64[m]. entries: live ones.
    """
    count = len(pages.alone)
    state = np.array([first, request.learned, entries, 0, 0, 0], np.int64)
    kept = np.zeros(count, np.bool_)
    most = int(np.diff(pages.offsets).max(initial=0))
    room = max(_ROOM, 1 + most)
    found, values = np.empty((room, FOUND_FIELDS), np.int64), np.empty((room, 2))
    expired = np.empty((len(oldest), 2), np.int64)
    bounds, rows = request.bounds, request.rows
    lower, upper, min_jaccard = (_NO_BOUNDS, _NO_BOUNDS, 1.0) if rows is None else rows.bounds
    ours, theirs = pages.columns, pool.columns
    ended = run_pages(
        state,
        pages.facts,
        pages.data,
        pages.starts,
        ours.sketches,
        ours.shingles,
        ours.sentences,
        ours.counts,
        pages.alone,
        pages.known if rows is not None else ~pages.alone,
        pages.offsets,
        pages.candidates,
        pages.equal_offsets,
        pages.equal,
        request.stops,
        pool.facts,
        pool.data,
        pool.starts,
        pool.sizes,
        theirs.sketches,
        theirs.shingles,
        theirs.sentences,
        theirs.counts,
        pool.gone,
        window.live,
        window.row,
        window.settled,
        window.length,
        window.first_page,
        lower,
        upper,
        min_jaccard,
        request.verified,
        request.learnable.columns,
        *request.host_text.tables,
        bounds is not None,
        0 if bounds is None else bounds.max_pages,
        -1 if bounds is None else bounds.aged_up_to,
        oldest,
        expired,
        kept,
        found,
        values,
    )
    done = int(state[PAGE])
    return PageRun(
        first,
        done - first,
        kept[first:done],
        int(state[LEARNED]),
        ended,
        int(state[COMPARED]),
        expired[: state[OLDEST]],
        found[: state[COUNT]],
        values[: state[COUNT]],
        pages.facts,
        pool,
        request.verified,
    )
