"""What each candidate channel finds, before and after verification by the rule table, and what it costs.

Candidates are searched among all earlier pages. Greedy deduplication then runs over the verified ones.
128-bit fingerprints and plain keys have no index: their candidates come from comparing all pairs, so they have no
time and no bytes. The filter finds keys with the cell index, whose sieve is a part of it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.index import uniform
from benchmarks.quality.edges import Edges, edges_sharing, edges_within
from benchmarks.quality.greedy_dedup import greedy_dedup
from benchmarks.quality.shingles import ShingleSets
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.matching import Match, Matcher
from dedup_service.core.evaluation.scoring import Evaluation, half_of, score_stream
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index import BlockIndex, CellRows
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.kernels import kernel
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.splitmix import mix64
from dedup_service.runtime.resources import SpaceOptions

ENTRIES = 1_000_000
CELLS = "cells of 8 × 8 keys, sieve"
SEED_OF_KEYS = np.uint64(0x5851F42D4C957F2D)
Words = npt.NDArray[np.uint64]
Index = TypeVar("Index")


@dataclass(frozen=True, slots=True)
class ChannelFigures:
    """Figures of one channel.

    candidates: earlier candidates for each page. found: of the positives of half 1, the share with a page of
    their group among the candidates, by strength ("" is all). after: scores of greedy deduplication over the
    verified candidates. bytes_an_entry: of the index, with ENTRIES uniform fingerprints or keys. us_a_page:
    µs to probe and insert each page of the stream in turn. Both are None without an index.
    """

    name: str
    candidates: float
    found: dict[str, float]
    after: Evaluation
    bytes_an_entry: float | None = None
    us_a_page: float | None = None


def compute(workspace: Workspace) -> list[ChannelFigures]:
    """Return the figures of all channels, from the cheapest to all together."""
    pages = workspace.prepared("stream")
    edges = _channels(workspace, pages)
    everything = _joined(list(edges.values()), len(pages))
    verified = _verified(pages, everything)
    costs = _costs(workspace, pages)
    found = []
    for name, part in edges.items():
        mask = np.isin(_codes(everything, len(pages)), _codes(part, len(pages)), assume_unique=True)
        chosen = everything.where(mask)
        accepted = Edges(chosen.later, chosen.earlier, verified[mask]).at_least(0.0)
        named = greedy_dedup(pages, accepted)
        bytes_an_entry, us_a_page = costs.get(name, (None, None))
        found.append(
            ChannelFigures(
                name,
                len(part) / len(pages),
                _found(workspace, pages, part),
                score_stream(workspace.corpora.truth, named, half=1),
                bytes_an_entry,
                us_a_page,
            )
        )
    return found


def _channels(workspace: Workspace, pages: Sequence[PreparedPage]) -> dict[str, Edges]:
    channels = workspace.channels("stream")
    judged = np.array([page.reason is None for page in pages])
    body = edges_within(channels.body, channels.has_body & judged, 7)
    words = edges_within(channels.words, channels.has_words & judged, 7)
    wide = {name: _edges_128(workspace, name, judged) for name in ("body", "words")}
    sets = workspace.shingles("stream")
    size = len(pages)
    found = {}
    for k in (3, 5, 7):
        found[f"body, k = {k}"] = body.at_least(-k)
        found[f"words, k = {k}"] = words.at_least(-k)
        found[f"body and words, k = {k}"] = _joined([body.at_least(-k), words.at_least(-k)], size)
    for k in (6, 14):
        found[f"128 bits, body and words, k = {k}"] = _joined([part.at_least(-k) for part in wide.values()], size)
    for parts in (4, 8, 16):
        found[f"{parts} keys"] = edges_sharing(*keys_in_parts(sets, parts))
    found[CELLS] = _edges_of_cells(pages)
    found[f"{CELLS}, body and words, k = 3"] = _joined([found["body and words, k = 3"], found[CELLS]], size)
    return found


def _edges_of_cells(pages: Sequence[PreparedPage]) -> Edges:
    """Return what the cell index finds for each page if all earlier pages are in it."""
    index = CellRows()
    later, earlier = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for place, page in enumerate(pages):
        found, _ = index.probe(page.keys, _sieve(page))
        later.append(np.full(len(found), place))
        earlier.append(found.astype(np.int64))
        index.insert(place, place, page.keys, _sieve(page))
    joined = np.concatenate(later), np.concatenate(earlier)
    return Edges(*joined, np.zeros(len(joined[0])))


def _sieve(page: PreparedPage) -> bytes:
    return Evidence(page.evidence).sketch[:SIEVE_BYTES] or bytes(SIEVE_BYTES)


def keys_in_parts(sets: ShingleSets, parts: int) -> tuple[npt.NDArray[np.int64], Words]:
    """Return owners int64[m] and keys uint64[m] of sets.

    A key is the smallest hash of one part. With eight parts these are the first keys that a page is stored by.
    """
    owners, keys = _keys_in_parts(sets.offsets, mix64(sets.values ^ SEED_OF_KEYS), parts)
    return owners, keys


@kernel
def _keys_in_parts(offsets: npt.NDArray[np.int64], mixed: Words, parts: int) -> tuple[npt.NDArray[np.int64], Words]:
    owners, keys = np.empty((len(offsets) - 1) * parts, np.int64), np.empty((len(offsets) - 1) * parts, np.uint64)
    shift, found = np.uint64(64 - 11), 0
    first, last = np.uint64(3), np.uint64(32)
    minimum, present = np.zeros(parts, np.uint64), np.zeros(parts, np.bool_)
    for owner in range(len(offsets) - 1):
        present[:] = False
        for at in range(offsets[owner], offsets[owner + 1]):
            part = int(np.int64(mixed[at] >> shift)) * parts // 2048
            value = max((mixed[at] << first) >> last, np.uint64(1))
            if not present[part] or value < minimum[part]:
                minimum[part], present[part] = value, True
        for part in range(parts):
            if present[part]:
                owners[found] = owner
                keys[found] = minimum[part]
                found += 1
    return owners[:found], keys[:found]


def _edges_128(workspace: Workspace, channel: str, judged: npt.NDArray[np.bool_]) -> Edges:
    """Return the pairs within 14 of 128 bits: within 14 in the low half, then in both."""
    values = [getattr(item, channel) for item in workspace.fingerprints("stream", SpaceOptions(bits=128))]
    present = np.array([value is not None for value in values]) & judged
    low, high = (np.array([(v or 0) >> shift & (1 << 64) - 1 for v in values], np.uint64) for shift in (0, 64))
    # Of two values within 14 bits, the low or the high halves are within 7.
    one, other = edges_within(low, present, 7), edges_within(high, present, 7)
    joined = _joined([one, other], len(values))
    far = np.bitwise_count(low[joined.later] ^ low[joined.earlier]).astype(np.int64)
    far += np.bitwise_count(high[joined.later] ^ high[joined.earlier])
    return Edges(joined.later, joined.earlier, -far.astype(np.float64)).at_least(-14)


def _verified(pages: Sequence[PreparedPage], edges: Edges) -> npt.NDArray[np.float64]:
    """Return the score of each edge that the default rule table accepts, −1 for any other: float64[n]."""
    matcher = Matcher(PROFILES[DEFAULT_PROFILE])
    entries = [Entry.from_page(place + 1, page, place) for place, page in enumerate(pages)]
    evidence = [Evidence(page.evidence) for page in pages]
    found = np.full(len(edges), -1.0)
    pairs = zip(edges.later.tolist(), edges.earlier.tolist(), strict=True)
    for at, (later, earlier) in enumerate(tracked(pairs, "candidates verified", len(edges))):
        match = matcher.compare(entries[earlier], pages[later], evidence[later])
        if isinstance(match, Match):
            found[at] = match.score
    return found


def _found(workspace: Workspace, pages: Sequence[PreparedPage], edges: Edges) -> dict[str, float]:
    """Return the share of positives of half 1 that have a page of their group among their candidates."""
    groups = {row.id: row.group for row in workspace.corpora.truth}
    names = [groups[page.page.id] for page in pages]
    there = {
        later
        for later, earlier in zip(edges.later.tolist(), edges.earlier.tolist(), strict=True)
        if names[later] == names[earlier]
    }
    counts: dict[str, list[int]] = {}
    for place, row in enumerate(workspace.corpora.truth):
        if row.positive and half_of(row.group) == 1:
            for stratum in ("", *(name for name in row.strata if name.startswith("strength"))):
                hits = counts.setdefault(stratum.removeprefix("strength "), [0, 0])
                hits[0] += place in there
                hits[1] += 1
    return {name: hits / of for name, (hits, of) in sorted(counts.items())}


def _costs(workspace: Workspace, pages: Sequence[PreparedPage]) -> dict[str, tuple[float, float]]:
    """Return (bytes an entry with ENTRIES entries, µs a page of the stream) by channel."""
    channels = workspace.channels("stream")
    judged = np.array([page.reason is None for page in pages])
    of_blocks = _bytes_of_blocks()
    costs: dict[str, tuple[float, float]] = {}
    for k in (3, 5, 7):
        for name, values, present in (
            ("body", channels.body, channels.has_body),
            ("words", channels.words, channels.has_words),
        ):
            costs[f"{name}, k = {k}"] = of_blocks, _time_of_blocks(values[present & judged].tolist(), k)
        costs[f"body and words, k = {k}"] = _sum(costs[f"body, k = {k}"], costs[f"words, k = {k}"])
    costs[CELLS] = _bytes_of_cells(), _time_of_cells(pages)
    costs[f"{CELLS}, body and words, k = 3"] = _sum(costs[CELLS], costs["body and words, k = 3"])
    return costs


def _sum(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] + other[0], one[1] + other[1]


def _bytes_of_blocks() -> float:
    index = BlockIndex(3)
    index.insert_many(np.arange(ENTRIES), uniform(ENTRIES, SEED))
    return index.statistics().bytes / ENTRIES


def _bytes_of_cells() -> float:
    """Return the bytes an entry of a cell index whose keys are all different, each in its first cell."""
    paths = np.zeros((ENTRIES, PARTS + 4 * PARTS), np.uint8)  # of each part the level, 0, then its first key
    paths[:, PARTS:] = np.random.default_rng(SEED).integers(0, 256, (ENTRIES, 4 * PARTS), dtype=np.uint8)
    index, places = CellRows(), np.arange(ENTRIES)
    index.restore(places.astype(np.uint32), places, np.zeros((ENTRIES, SIEVE_BYTES // 8), np.uint64), paths.tobytes())
    return index.statistics().bytes / ENTRIES


def _time_of_blocks(values: Sequence[int], k: int) -> float:
    def run(index: BlockIndex) -> None:
        for sequence, value in enumerate(values):
            index.probe(value)
            index.insert(sequence, value)

    return _timed(partial(BlockIndex, k), run, len(values))


def _time_of_cells(pages: Sequence[PreparedPage]) -> float:
    rows = [(page.keys, _sieve(page)) for page in pages]

    def run(index: CellRows) -> None:
        for place, (keys, sieve) in enumerate(rows):
            index.probe(keys, sieve)
            index.insert(place, place, keys, sieve)

    return _timed(CellRows, run, len(rows))


def _timed(make: Callable[[], Index], run: Callable[[Index], None], count: int) -> float:
    """Return the shortest processor time of three runs, in µs for each of `count` pages."""
    times = []
    for _ in range(3):
        index = make()
        begin = time.process_time()
        run(index)
        times.append(time.process_time() - begin)
    return min(times) * 1e6 / count


def _codes(edges: Edges, size: int) -> npt.NDArray[np.int64]:
    return edges.later * size + edges.earlier


def _joined(parts: Sequence[Edges], size: int) -> Edges:
    """Return every edge of `parts` once, sorted by later and earlier; likeness 0."""
    codes = np.unique(np.concatenate([_codes(part, size) for part in parts]))
    return Edges(codes // size, codes % size, np.zeros(len(codes)))
