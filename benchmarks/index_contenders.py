"""The indexes that `benchmarks.index` compares, behind one face: ours in its layouts, and peers if they are installed.

Every contender is exact within 3 bits, except usearch, whose graph is approximate. A peer that cannot be imported
is left out, with a line that says so.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.index import BlockIndex, Layout

RADIUS = 3

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

    def __init__(self, radius: int = RADIUS, layout: Layout | None = None) -> None:
        self._index = BlockIndex(radius, layout=layout)

    def add(self, first: int, fingerprints: Fingerprints) -> None:
        """Insert them as rows."""
        self._index.insert_many(np.arange(first, first + len(fingerprints)), fingerprints)

    def search(self, fingerprints: Fingerprints) -> Found:
        """Return what one bulk probe finds."""
        found = self._index.probe_many(fingerprints)
        return np.repeat(np.arange(len(fingerprints)), np.diff(found.offsets)), found.sequences

    def size_bytes(self) -> int:
        """Return what the index counts."""
        return self._index.statistics().bytes


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
