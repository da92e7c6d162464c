"""Pages of a batch that are decided in one compiled loop, up to one that needs more than its candidates.

Of most pages nothing is found, and of most others a candidate or two. What such a page does to the entries depends on
its candidates alone: it is kept if none of them is a match, whatever the guards say of a match. So the loop compares
candidates, keeps pages, lets entries expire and learns the hosts' own text, in the order of the pages, and its owner
makes verdicts of what it found. It stops at a page that cannot be judged, may be a visit or is spoken of by a
correction, and where evidence is not as `pack_evidence` writes it; such pages are decided one by one.

Invariant: the result is what `Matcher.compare`, `Expiry` and `HostText.learn` give for one page after another.

The loop of `page_runs`: pages decided one after another, as far as that depends on their candidates alone.

It compares candidates as `Matcher.compare` does, without the host's own text as it was learned up to the page; lets
entries expire as `Expiry` says; and keeps the pages that match nothing. Arrays are as in `page_runs`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import BODY_DECIDES, BODY_HASH, TEXT_HASH, Rows, channel_flag
from dedup_service.core.decision.expiry import MAX_BEFORE_PAGE, ExpiryBounds
from dedup_service.core.decision.guard_tracker import COMMON_TERMS, OF_TERMS
from dedup_service.core.decision.host_text import (
    REGIONS,
    HostText,
    LearnedPages,
    common_among,
    common_of_both,
    learn_pages,
)
from dedup_service.core.decision.matching import CONTAINED, MIN_LENGTH_RATIO, Containment, FigureChange, NearMiss
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.overlap import screened
from dedup_service.core.evidence.packed import header_of, read_sentences, read_terms
from dedup_service.core.evidence.quantities import DISTANT, FOUND, QUANTITIES, pair_quantities, shared_values
from dedup_service.core.kernels import kernel_inline, kernel_inline_allocating, long_kernel, popcount
from dedup_service.core.rules.compiled_rows import NO_ROW, CompiledRows, first_holding
from dedup_service.core.rules.match_row import LONG
from dedup_service.core.verdict import Distance, new_distance

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Learnable = tuple[
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint8],
    npt.NDArray[np.uint32],
    npt.NDArray[np.int64],
]

FIELDS = ("sequence", "words", "body", "text_hash", "body_hash", "host", "ordinal", "flags")
SEQUENCE, _WORDS_AT, _BODY_AT, _TEXT_HASH_AT, BODY_HASH_AT, _HOST, _ORDINAL, FLAGS = range(len(FIELDS))
WINDOW_ROW = len(FIELDS)
FACTS = WINDOW_ROW + 1
"""Numbers of a page or an entry, int64: fields of ROW, and the row of the window that has it, or -1."""

_WORDS, _BODY = channel_flag("words"), channel_flag("body")
_JACCARD, _CONTAINMENT, _LENGTH_RATIO = (QUANTITIES.index(name) for name in ("jaccard", "containment", "length_ratio"))

PAGE, LEARNED, ENTRIES, OLDEST, COUNT, COMPARED = range(6)
"""Where a run is, int64[6]: the next page, pages from which the hosts' text is learned, live entries, entries that
expired, what was found, and candidates that were compared."""

STOPPED, LEARN, FULL, MORE_OLDEST = range(4)
"""Why a run ended. STOPPED: at a page that needs more, or behind the last one. LEARN: the hosts' text needs larger
tables. FULL: no room for what is found. MORE_OLDEST: more entries may expire than are known."""

_PLACE, _ROW, _TITLE, _CONTAINS, _WORDS_APART, _BODY_APART, FOUND_PAGE = range(7)
FOUND_FIELDS = 7

SAME = -2
"""In the place of a row: both have the same text."""

AFTER, BY_AGE = 2, 1
_LETTERS, _SIZE, _SENTENCES, _TERMS = 0, 1, 6, 7
_HEADER_FIELDS, _SAMPLE = 9, 256
_LARGEST = np.uint32((1 << 32) - 1)


@long_kernel
def run_pages(  # noqa: C901, PLR0912 - one loop
    state: Integers,
    facts: Integers,
    data: npt.NDArray[np.uint8],
    starts: Integers,
    sketches: npt.NDArray[np.uint64],
    shingles: Integers,
    sentences: npt.NDArray[np.uint32],
    counts: Integers,
    alone: Mask,
    known: Mask,
    offsets: Integers,
    candidates: Integers,
    equal_offsets: Integers,
    equal: Integers,
    stops: Mask,
    pool_facts: Integers,
    pool_data: npt.NDArray[np.uint8],
    pool_starts: Integers,
    pool_sizes: Integers,
    pool_sketches: npt.NDArray[np.uint64],
    pool_shingles: Integers,
    pool_sentences: npt.NDArray[np.uint32],
    pool_counts: Integers,
    gone: Mask,
    live: Mask,
    window_row: int,
    settled: int,
    window: int,
    first_page: int,
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
    min_jaccard: float,
    verified: int,
    learnable: Learnable,
    regions: tuple[npt.NDArray[np.uint64], ...],
    held: Integers,
    expires: bool,
    max_pages: int,
    aged_up_to: int,
    oldest: Integers,
    expired: Integers,
    kept: Mask,
    found: Integers,
    values: npt.NDArray[np.float64],
) -> int:
    """Decide pages from state[PAGE] on; return why the run ended. Arguments as in `run_on` and its classes.

    The first page of the batch is in row `window_row` of the window, whose rows before `settled` leave it after
    `window` pages, and is number `first_page` of those announced, which `stops` and `learnable` have. kept: bool[n];
    found: int64[room, FOUND_FIELDS]; values: float64[room, 2], Jaccard similarity and containment.
    """
    hosts, titles, texts, learns, learned_sentences, learned_counts = learnable
    measured, samples = np.empty(lower.shape[1]), np.empty((2, _SAMPLE), np.uint32)
    while state[PAGE] < len(alone):
        page = state[PAGE]
        number = first_page + page
        if stops[number] or known[page]:
            return STOPPED
        if expires and state[OLDEST] + MAX_BEFORE_PAGE + 1 > len(oldest):
            return MORE_OLDEST
        if state[COUNT] + 1 + offsets[page + 1] - offsets[page] > len(found):
            return FULL
        if not alone[page] and state[LEARNED] < number:
            learned = state[LEARNED]
            state[LEARNED] = learn_pages(
                hosts, titles, texts, learns, learned_sentences, learned_counts, learned, number, regions, held
            )
            if state[LEARNED] < number:
                return LEARN
        entries, expirations, several = state[ENTRIES], state[OLDEST], state[COUNT]
        up_to = np.int64(-1)
        if expires:
            for _ in range(MAX_BEFORE_PAGE):
                expire_step(state, page << 2, max_pages, aged_up_to, oldest, expired)
            if state[OLDEST]:
                up_to = oldest[state[OLDEST] - 1]
        matches = 0
        if not alone[page]:
            matches = find_equal(
                page,
                facts,
                data[starts[page] : starts[page + 1]],
                equal[equal_offsets[page] : equal_offsets[page + 1]],
                pool_facts,
                pool_data,
                pool_starts,
                pool_sizes,
                gone,
                live,
                settled,
                window,
                up_to,
                state,
                found,
                samples,
            )
            if matches == 0:
                matches = compare_page(
                    page,
                    facts,
                    data[starts[page] : starts[page + 1]],
                    sketches,
                    shingles,
                    sentences,
                    counts,
                    candidates[offsets[page] : offsets[page + 1]],
                    pool_facts,
                    pool_data,
                    pool_starts,
                    pool_sizes,
                    pool_sketches,
                    pool_shingles,
                    pool_sentences,
                    pool_counts,
                    gone,
                    live,
                    settled,
                    window,
                    up_to,
                    lower,
                    upper,
                    min_jaccard,
                    verified,
                    regions,
                    state,
                    found,
                    values,
                    measured,
                    samples,
                )
        if matches < 0:
            state[ENTRIES], state[OLDEST], state[COUNT] = entries, expirations, several
            return STOPPED
        if matches == 0:
            kept[page] = live[window_row + page] = True
            state[ENTRIES] += 1
        if expires:
            expire_step(state, page << 2 | AFTER, max_pages, aged_up_to, oldest, expired)
        state[PAGE] += 1
    return STOPPED


@kernel_inline_allocating
def find_equal(
    page: int,
    facts: Integers,
    packed: npt.NDArray[np.uint8],
    chosen: Integers,
    pool_facts: Integers,
    pool_data: npt.NDArray[np.uint8],
    pool_starts: Integers,
    pool_sizes: Integers,
    gone: Mask,
    live: Mask,
    settled: int,
    window: int,
    up_to: np.int64,
    state: Integers,
    found: Integers,
    samples: npt.NDArray[np.uint32],
) -> int:
    """Write the earliest of the chosen entries that has the text of a page, and return how many there are: 0 or 1.

    Returns -1 if evidence is not as `pack_evidence` writes it.
    """
    earliest = np.int64(-1)
    for place in chosen:
        if (
            is_same_text(facts, page, pool_facts, place)
            and is_there(place, page, facts, pool_facts, gone, live, settled, window, up_to)
            and (earliest < 0 or pool_facts[place, SEQUENCE] < pool_facts[earliest, SEQUENCE])
        ):
            earliest = place
    if earliest < 0:
        return 0
    header = np.empty(_HEADER_FIELDS, np.int64)
    header_of(packed, header)
    if (
        not has_text_of(facts, page, pool_facts, int(earliest)) and header[_SIZE] < LONG
    ):  # flags take any bytes for evidence
        return -1
    other = pool_data[pool_starts[earliest] : pool_starts[earliest] + pool_sizes[earliest]]
    title = title_relation(packed, other, samples)
    if title < 0:
        return -1
    write_found(int(state[COUNT]), page, int(earliest), SAME, title, False, facts, pool_facts, found)
    state[COUNT] += 1
    return 1


@kernel_inline_allocating
def compare_page(
    page: int,
    facts: Integers,
    packed: npt.NDArray[np.uint8],
    sketches: npt.NDArray[np.uint64],
    shingles: Integers,
    sentences: npt.NDArray[np.uint32],
    counts: Integers,
    chosen: Integers,
    pool_facts: Integers,
    pool_data: npt.NDArray[np.uint8],
    pool_starts: Integers,
    pool_sizes: Integers,
    pool_sketches: npt.NDArray[np.uint64],
    pool_shingles: Integers,
    pool_sentences: npt.NDArray[np.uint32],
    pool_counts: Integers,
    gone: Mask,
    live: Mask,
    settled: int,
    window: int,
    up_to: np.int64,
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
    min_jaccard: float,
    verified: int,
    regions: tuple[npt.NDArray[np.uint64], ...],
    state: Integers,
    found: Integers,
    values: npt.NDArray[np.float64],
    measured: npt.NDArray[np.float64],
    samples: npt.NDArray[np.uint32],
) -> int:
    """Write the matches and near misses of a page among the chosen entries, and return how many are matches.

    Returns -1 where evidence is not as `pack_evidence` writes it, or an entry has the same text.
    """
    if len(chosen) == 0:
        return 0
    header, theirs = np.empty(_HEADER_FIELDS, np.int64), np.empty(_HEADER_FIELDS, np.int64)
    header_of(packed, header)
    if header[_SENTENCES] != counts[page]:  # more than columns have
        return -1
    if shingles[page] == 0:  # it is similar to nothing
        return 0
    host, ours = np.uint64(facts[page, _HOST]), sentences[page, : counts[page]]
    table = regions[np.int64(host % np.uint64(REGIONS))]
    similar = screened(
        sketches[page],
        shingles[page],
        header[_LETTERS],
        ours,
        ours[common_among(host, ours, table)],
        min_jaccard,
        chosen,
        pool_sketches,
        pool_shingles,
        pool_sentences,
        pool_counts,
    )
    matches = 0
    for place in similar:
        if not is_there(place, page, facts, pool_facts, gone, live, settled, window, up_to):
            continue
        state[COMPARED] += 1
        other = pool_data[pool_starts[place] : pool_starts[place] + pool_sizes[place]]
        header_of(other, theirs)
        if not read_sentences(other, theirs, samples[0]) or has_same_text(facts, page, pool_facts, place):
            return -1
        other_host = np.uint64(pool_facts[place, _HOST])
        other_table = regions[np.int64(other_host % np.uint64(REGIONS))]
        values_of = samples[0, : theirs[_SENTENCES]]
        common = common_of_both(host, ours, table, other_host, values_of, other_table)
        words = distance_of(facts, page, pool_facts, place, _WORDS_AT, _WORDS)
        body = distance_of(facts, page, pool_facts, place, _BODY_AT, _BODY)
        outcome = pair_quantities(other, packed, common, host == other_host, words, body, min_jaccard, measured)
        if outcome == DISTANT:
            continue
        if outcome != FOUND:
            return -1
        row = first_holding(measured, lower, upper)
        is_contained = measured[_LENGTH_RATIO] > MIN_LENGTH_RATIO and measured[_CONTAINMENT] >= CONTAINED
        if row == NO_ROW and not is_contained:
            continue
        at, title = int(state[COUNT]), title_relation(packed, other, samples)
        write_found(at, page, int(place), row, title, header[_LETTERS] > theirs[_LETTERS], facts, pool_facts, found)
        values[at, 0], values[at, 1] = measured[_JACCARD], measured[_CONTAINMENT]
        state[COUNT] += 1
        matches += 0 <= row < verified
    return matches


@kernel_inline
def expire_step(
    state: Integers, when: int, max_pages: int, aged_up_to: int, oldest: Integers, expired: Integers
) -> None:
    """Let the earliest entry expire if it is beyond the bounds.

    Writes its sequence to expired: int64[m, 2], and four times the page, plus AFTER if it was after that page, plus
    BY_AGE if the number of entries is within its bound.
    """
    at = state[OLDEST]
    crowded = state[ENTRIES] > max_pages
    if crowded or oldest[at] <= aged_up_to:
        expired[at, 0], expired[at, 1] = oldest[at], when | (0 if crowded else BY_AGE)
        state[OLDEST] += 1
        state[ENTRIES] -= 1


@kernel_inline
def is_there(
    place: int,
    page: int,
    facts: Integers,
    pool_facts: Integers,
    gone: Mask,
    live: Mask,
    settled: int,
    window: int,
    up_to: np.int64,
) -> bool:
    """Return whether an entry is live when a page is decided, and, if it was found in the window, still there."""
    if gone[place] or pool_facts[place, SEQUENCE] <= up_to:
        return False
    row = pool_facts[place, WINDOW_ROW]
    if row < 0:
        return True
    has_left = row < settled and pool_facts[place, _ORDINAL] <= facts[page, _ORDINAL] - window
    return bool(live[row] and not has_left)


@kernel_inline
def write_found(
    at: int,
    page: int,
    place: int,
    row: int,
    title: int,
    contains: bool,
    facts: Integers,
    pool_facts: Integers,
    found: Integers,
) -> None:
    """Write what was found of a page and a candidate: found[at], int64[FOUND_FIELDS]."""
    found[at, _PLACE], found[at, _ROW], found[at, FOUND_PAGE] = place, row, page
    found[at, _TITLE], found[at, _CONTAINS] = title, contains
    found[at, _WORDS_APART] = bits_apart(facts, page, pool_facts, place, _WORDS_AT, _WORDS)
    found[at, _BODY_APART] = bits_apart(facts, page, pool_facts, place, _BODY_AT, _BODY)


@kernel_inline
def is_same_text(facts: Integers, page: int, pool_facts: Integers, place: int) -> bool:
    """Return whether title and body of a page are those of a candidate, or a body that is long enough alone."""
    decides = facts[page, FLAGS] & pool_facts[place, FLAGS] & BODY_DECIDES
    return has_text_of(facts, page, pool_facts, place) or bool(
        decides and facts[page, BODY_HASH_AT] == pool_facts[place, BODY_HASH_AT]
    )


@kernel_inline
def has_text_of(facts: Integers, page: int, pool_facts: Integers, place: int) -> bool:
    """Return whether title and body of a page are those of a candidate."""
    both = facts[page, FLAGS] & pool_facts[place, FLAGS] & TEXT_HASH
    return bool(both and facts[page, _TEXT_HASH_AT] == pool_facts[place, _TEXT_HASH_AT])


@kernel_inline
def has_same_text(facts: Integers, page: int, pool_facts: Integers, place: int) -> bool:
    """Return whether a page may have the text of a candidate; then it is decided by itself."""
    hashed = facts[page, FLAGS] & pool_facts[place, FLAGS] & BODY_HASH
    return has_text_of(facts, page, pool_facts, place) or bool(
        hashed and facts[page, BODY_HASH_AT] == pool_facts[place, BODY_HASH_AT]
    )


@kernel_inline
def bits_apart(facts: Integers, page: int, pool_facts: Integers, place: int, field: int, flag: int) -> int:
    """Return in how many bits the fingerprints of a channel differ, -1 if one of the two has none."""
    if not facts[page, FLAGS] & pool_facts[place, FLAGS] & flag:
        return -1
    return popcount(np.uint64(facts[page, field] ^ pool_facts[place, field]))


@kernel_inline
def distance_of(facts: Integers, page: int, pool_facts: Integers, place: int, field: int, flag: int) -> float:
    """Return the same as a float, infinite if one of the two has no fingerprint."""
    bits = bits_apart(facts, page, pool_facts, place, field, flag)
    return np.inf if bits < 0 else float(bits)


@kernel_inline_allocating
def title_relation(packed: npt.NDArray[np.uint8], kept: npt.NDArray[np.uint8], samples: npt.NDArray[np.uint32]) -> int:
    """Return whether `guard_tracker.same_title` holds of two pieces of packed evidence: 1 or 0; -1 if it is not known.

    samples: uint32[2, 256], in which terms are read.
    """
    header, theirs = np.empty(_HEADER_FIELDS, np.int64), np.empty(_HEADER_FIELDS, np.int64)
    header_of(packed, header)
    header_of(kept, theirs)
    if not (read_terms(packed, header, samples[0]) and read_terms(kept, theirs, samples[1])):
        return -1
    terms, others = samples[0, : header[_TERMS]], samples[1, : theirs[_TERMS]]
    shorter = min(len(terms), len(others))
    _, _, both = shared_values(others, terms, _LARGEST, terms[:0])
    return int(len(terms) == 0 or (shorter > 0 and OF_TERMS * both >= COMMON_TERMS * shorter))


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
