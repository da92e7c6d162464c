"""The loop of `page_runs`: pages decided one after another, as far as that depends on their candidates alone.

It compares candidates as `Matcher.compare` does, without the host's own text as it was learned up to the page; lets
entries expire as `Expiry` says; and keeps the pages that match nothing. Arrays are as in `page_runs`.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import BODY_DECIDES, BODY_HASH, TEXT_HASH, channel_flag
from dedup_service.core.decision.expiry import MAX_BEFORE_PAGE
from dedup_service.core.decision.guard_tracker import COMMON_TERMS, OF_TERMS
from dedup_service.core.decision.host_text import REGIONS, common_among, common_of_both, learn_pages
from dedup_service.core.decision.matching import CONTAINED, MIN_LENGTH_RATIO
from dedup_service.core.evidence.overlap import screened
from dedup_service.core.evidence.packed import header_of, read_sentences, read_terms
from dedup_service.core.evidence.quantities import DISTANT, FOUND, QUANTITIES, pair_quantities, shared_values
from dedup_service.core.kernels import kernel_inline, kernel_inline_allocating, long_kernel, popcount
from dedup_service.core.rules.compiled_rows import NO_ROW, first_holding
from dedup_service.core.rules.match_row import LONG

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
