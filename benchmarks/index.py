"""Block index: query and insert, memory, pauses and recall, beside faiss, PyPI simhash and usearch in one run.

Data: uniform fingerprints from numpy's PCG64, seed 2026. Each index is filled in batches of 4,096; then batches of 512
fingerprints are searched and inserted, as a filter does, for --seconds, but not beyond half as many again. One query in
ten is a stored fingerprint with three bits flipped; recall is the share of these that is found. Speed is fingerprints
per second of processor time in one thread. p99 and the longest pause are wall-clock times of a batch of 512 and, while
filling, of 4,096. Bytes are what the index counts, or the growth of the process.

Every contender is exact within 3 bits, except usearch, whose graph is approximate. A peer that cannot be imported
is left out, with a line that says so.

    python -m benchmarks.index [--sizes 100000 1000000] [--largest N] [--radius 3 7] [--peer-sizes 100000]
"""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dedup_service._native import HammingIndex
from dedup_service.core.index import IndexStatistics

SEED = 2026
RADIUS = 3
FILL, BATCH, COPIES = 4096, 512, 10

Fingerprints = npt.NDArray[np.uint64]
Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class ComparedIndex(Protocol):
    """An index under measurement."""

    def add(self, first: int, fingerprints: Fingerprints) -> None:
        """Insert fingerprints: uint64[n], numbered from `first`."""
        ...

    def search(self, fingerprints: Fingerprints) -> Found:
        """Return places in the batch, and numbers of entries within the radius, not sorted."""
        ...

    def size_bytes(self) -> int | None:
        """Return the memory that the index counts; None if it does not."""
        ...


class Ours:
    """A block index."""

    def __init__(self, radius: int = RADIUS) -> None:
        self._index, self._radius = HammingIndex(), radius

    def add(self, first: int, fingerprints: Fingerprints) -> None:
        """Insert them as rows."""
        self._index.insert(np.arange(first, first + len(fingerprints), dtype=np.uint32), fingerprints)

    def search(self, fingerprints: Fingerprints) -> Found:
        """Return what one bulk probe finds."""
        found = self._index.probe(fingerprints, self._radius, sys.maxsize)
        counts = np.diff(np.frombuffer(found.offsets, np.int64))
        return np.repeat(np.arange(len(fingerprints)), counts), np.frombuffer(found.rows, np.uint32).astype(np.int64)

    def size_bytes(self) -> int:
        """Return what the index counts."""
        return IndexStatistics(*self._index.statistics()).bytes


class Faiss:
    """faiss: `IndexBinaryMultiHash` with so many hashes of so many bits and flips, or `IndexBinaryFlat`."""

    def __init__(self, hashes: int = 0, bits: int = 0, flips: int = 0) -> None:
        import faiss  # type: ignore[import-not-found]

        faiss.omp_set_num_threads(1)
        self._index: Any = faiss.IndexBinaryMultiHash(64, hashes, bits) if hashes else faiss.IndexBinaryFlat(64)
        if hashes:
            self._index.nflip = flips

    def add(self, first: int, fingerprints: Fingerprints) -> None:  # noqa: ARG002 - faiss counts by itself
        self._index.add(_bytes(fingerprints))

    def search(self, fingerprints: Fingerprints) -> Found:
        limits, _, numbers = self._index.range_search(_bytes(fingerprints), RADIUS + 1)  # nearer than this
        return np.repeat(np.arange(len(fingerprints)), np.diff(limits.astype(np.int64))), numbers

    def size_bytes(self) -> None:
        return None


class Simhash:
    """PyPI simhash: a dictionary for each of k + 1 blocks."""

    def __init__(self) -> None:
        from simhash import Simhash, SimhashIndex  # type: ignore[import-untyped]

        logging.getLogger("simhash").setLevel(logging.ERROR)
        self._value, self._index = Simhash, SimhashIndex([], k=RADIUS)

    def add(self, first: int, fingerprints: Fingerprints) -> None:
        for number, value in enumerate(fingerprints.tolist()):
            self._index.add(str(first + number), self._value(value))

    def search(self, fingerprints: Fingerprints) -> Found:
        found = [
            (query, int(name))
            for query, value in enumerate(fingerprints.tolist())
            for name in self._index.get_near_dups(self._value(value))
        ]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def size_bytes(self) -> None:
        return None


class Usearch:
    """usearch: a graph (HNSW) over bits, asked for the ten nearest; approximate."""

    def __init__(self) -> None:
        from usearch.index import Index  # type: ignore[import-not-found]

        self._index: Any = Index(ndim=64, metric="hamming", dtype="b1")

    def add(self, first: int, fingerprints: Fingerprints) -> None:
        self._index.add(np.arange(first, first + len(fingerprints)), _bytes(fingerprints), threads=1)

    def search(self, fingerprints: Fingerprints) -> Found:
        found = self._index.search(_bytes(fingerprints), 10, threads=1)
        queries, places = np.nonzero(np.asarray(found.distances) <= RADIUS)
        return queries, np.asarray(found.keys)[queries, places].astype(np.int64)

    def size_bytes(self) -> int:
        return int(self._index.memory_usage)


PEERS: dict[str, tuple[Callable[[], ComparedIndex], int]] = {
    "faiss MultiHash 4 × 16": (lambda: Faiss(4, 16), 10_000_000),
    "faiss MultiHash 2 × 32, 1 flip": (lambda: Faiss(2, 32, 1), 10_000_000),
    "faiss Flat": (Faiss, 1_000_000),
    "PyPI simhash": (Simhash, 100_000),
    "usearch (approximate)": (Usearch, 100_000),
}
"""Each with the size above which it is left out: it takes minutes or gigabytes there."""


def installed(name: str, make: Callable[[], ComparedIndex]) -> bool:
    """Return whether a contender can be made; print why not."""
    try:
        make()
    except ImportError as error:
        print(f"{name}: left out, {error}")
        return False
    return True


def _bytes(fingerprints: Fingerprints) -> npt.NDArray[np.uint8]:
    """Return uint8[n, 8]."""
    return np.ascontiguousarray(fingerprints).view(np.uint8).reshape(-1, 8)


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """One contender at one size. rate: query + insert a second; times in ms; size_bytes: of one fingerprint."""

    name: str
    size: int
    rate: float
    p99_ms: float
    pause_ms: float
    size_bytes: float
    recall: float


def uniform(count: int, seed: int) -> Fingerprints:
    """Return independent fingerprints: uint64[count]."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, dtype=np.uint64)


def flipped(fingerprints: Fingerprints, bits: int, seed: int) -> Fingerprints:
    """Return fingerprints with `bits` bits flipped (fewer where the same bit is drawn twice)."""
    generator = np.random.default_rng(seed)
    mask = np.zeros(len(fingerprints), np.uint64)
    for _ in range(bits):
        mask |= np.uint64(1) << generator.integers(0, 64, len(fingerprints), dtype=np.uint64)
    return fingerprints ^ mask


def resident_bytes() -> int:
    """Return the memory of this process, from the kernel."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, make: Callable[[], ComparedIndex], stored: Fingerprints, seconds: float) -> IndexFigures:
    """Fill an index, then search and insert batches for so many seconds, or until it is half as large again."""
    before, index, pause = resident_bytes(), make(), 0.0
    for first in range(0, len(stored), FILL):
        begin = time.perf_counter()
        index.add(first, stored[first : first + FILL])
        pause = max(pause, time.perf_counter() - begin)
    size_bytes = float(index.size_bytes() or resident_bytes() - before)
    if size_bytes < 16 * len(stored):  # fewer than a fingerprint and a number: it used memory that was there already
        size_bytes = float("nan")
    walls, spent, found, planted, number = [], 0.0, 0, 0, len(stored)
    while spent < seconds and number < len(stored) * 3 // 2:
        generator = np.random.default_rng([SEED, number])
        batch = generator.integers(0, 1 << 64, BATCH, dtype=np.uint64)
        sources = generator.integers(0, len(stored), len(batch[::COPIES]))
        batch[::COPIES] = flipped(stored[sources], RADIUS, number)
        begin, begin_wall = time.process_time(), time.perf_counter()
        queries, numbers = index.search(batch)
        index.add(number, batch)
        spent += time.process_time() - begin
        walls.append(time.perf_counter() - begin_wall)
        number += len(batch)
        answers = set(zip(queries.tolist(), numbers.tolist(), strict=True))
        found += len(answers & set(zip(range(0, BATCH, COPIES), sources.tolist(), strict=True)))
        planted += len(sources)
    rate = (number - len(stored)) / spent
    p99_ms = float(np.percentile(walls, 99)) * 1e3
    return IndexFigures(name, len(stored), rate, p99_ms, pause * 1e3, size_bytes / len(stored), found / planted)


def chosen(
    sizes: list[int], peer_sizes: list[int], radii: list[int]
) -> dict[str, tuple[Callable[[], ComparedIndex], list[int]]]:
    """Return the contenders, each with the sizes at which it is measured."""
    contenders: dict[str, tuple[Callable[[], ComparedIndex], list[int]]] = {}
    if RADIUS in radii:
        contenders["twinsieve, k = 3"] = (Ours, sizes)
        for name, (make, most) in PEERS.items():
            if peer_sizes and installed(name, make):
                contenders[name] = (make, [size for size in peer_sizes if size <= most])
    if 7 in radii:
        contenders["twinsieve, k = 7"] = (lambda: Ours(7), [size for size in sizes if size <= 10_000_000])
    return contenders


def compared(sizes: list[int], peer_sizes: list[int], radii: list[int], seconds: float) -> None:
    """Measure and print every contender at every size."""
    contenders = chosen(sizes, peer_sizes, radii)
    print("| index | fingerprints | query + insert/s | p99 of 512 | longest fill of 4,096 | bytes | recall |")
    print("|---|---|---|---|---|---|---|")
    results = []
    for size in sorted({*sizes, *peer_sizes}):
        stored = uniform(size, SEED)
        for name, (make, wanted) in contenders.items():
            if size in wanted:
                one = measure(name, make, stored, seconds)
                results.append(one)
                print(
                    f"| {one.name} | {one.size:,} | {one.rate:,.0f} | {one.p99_ms:.2f} ms | {one.pause_ms:.1f} ms "
                    f"| {one.size_bytes:.0f} | {one.recall:.3f} |",
                    flush=True,
                )
    ours = {one.size: one.rate for one in results if one.name == "twinsieve, k = 3"}
    for one in results:
        if not one.name.startswith("twinsieve") and one.size in ours:
            print(f"ratio at {one.size:,}: {ours[one.size] / one.rate:,.0f} × {one.name}")


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000], help="entries of the block index")
    parser.add_argument("--largest", type=int, default=0, help="one more size of ours, k = 3 alone")
    parser.add_argument(
        "--peer-sizes",
        type=int,
        nargs="*",
        default=[100_000],
        help="entries of the peers; none: ours alone",
    )
    parser.add_argument("--radius", type=int, nargs="*", default=[3, 7], help="radii of the block index")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time for each contender")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    compared(options.sizes, options.peer_sizes, options.radius, options.seconds)
    if options.largest:
        compared([options.largest], [], [RADIUS], options.seconds)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
