"""Size of each cluster of duplicates: estimated pages, hosts, other titles and texts of a kept page's copies.

Each cluster takes 64 bytes (four sketches, see below), about 170 with its place in the
dictionary. Their number is bounded: beyond the bound the quarter that grew least recently is forgotten at
once. A cluster that collapses grows all the time and is never among them.
Invariant: the same copies give the same clusters, from the beginning or from the bytes of `pack` in between.

HyperLogLog: an estimate of how many different values were seen, in 16 bytes (32 registers of four bits).

The low five bits of a value's 64-bit hash choose a register. The register keeps the largest rank seen: the
number of zeros that the remaining bits begin with (from the low end), plus one, at most 15. Small counts
come from the number of empty registers (linear counting). The standard error is 1.04/√32, a fifth.

Invariants: a repeated value changes nothing; the order of values does not matter; all arithmetic is in
integers, so the estimate is the same on every machine.
Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog", AofA 2007, figure 3; α₃₂ = .697.
"""

import math
import struct
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

REGISTERS, MAX_RANK = 32, 15
SKETCH_BYTES = REGISTERS // 2
EMPTY = bytes(SKETCH_BYTES)

_ALPHA_THOUSANDTHS = 697
_RAW = _ALPHA_THOUSANDTHS * REGISTERS * REGISTERS << MAX_RANK
_LINEAR_BELOW = REGISTERS * 5 // 2
_LINEAR = [REGISTERS * 8, *(round(REGISTERS * math.log(REGISTERS / empty)) for empty in range(1, REGISTERS + 1))]
_WEIGHT = [(1 << MAX_RANK - (pair & 15)) + (1 << MAX_RANK - (pair >> 4)) for pair in range(256)]
_EMPTY_REGISTERS = [(not pair & 15) + (not pair >> 4) for pair in range(256)]


def with_value(sketch: bytes, value: int) -> bytes:
    """Return `sketch` with one more value. value: its hash, unsigned 64-bit, well mixed."""
    register, rest = value % REGISTERS, value // REGISTERS
    rank = min((rest & -rest).bit_length() or MAX_RANK, MAX_RANK)
    byte, shift = register >> 1, (register & 1) << 2
    increase = rank - (sketch[byte] >> shift & 15)
    if increase <= 0:
        return sketch
    return sketch[:byte] + bytes((sketch[byte] + (increase << shift),)) + sketch[byte + 1 :]


_SINGLES = [
    [with_value(EMPTY, ((1 << rank - 1 if rank else 0) * REGISTERS + register)) for rank in range(MAX_RANK + 1)]
    for register in range(REGISTERS)
]


def single(value: int) -> bytes:
    """Return the sketch of one value. value: its hash, unsigned 64-bit, well mixed."""
    rest = value // REGISTERS
    return _SINGLES[value % REGISTERS][min((rest & -rest).bit_length() or MAX_RANK, MAX_RANK)]


@lru_cache(maxsize=4096)  # sketches seldom change, and few different ones hold a single value
def estimate(sketch: bytes) -> int:
    """Return the estimated number of different values in `sketch`; exact for none and one."""
    raw = _RAW // (1000 * sum(map(_WEIGHT.__getitem__, sketch)))
    if raw > _LINEAR_BELOW:
        return raw
    empty = sum(map(_EMPTY_REGISTERS.__getitem__, sketch))
    return _LINEAR[empty] if empty else raw


MAX_CLUSTERS = 1 << 17
"""22 MB of memory. A cluster is forgotten once 100,000 others have grown: after a million pages or so."""

_SKETCHES = 4
_CLUSTER_BYTES = len(EMPTY) * _SKETCHES
_ROW = np.dtype([("original", "<i8"), ("sketches", f"V{_CLUSTER_BYTES}")])
_COPY = struct.Struct("<q4I")


class Copy(NamedTuple):
    """A page that matched the kept page at sequence `original`.

    The rest are the low 32 bits of hashes, which is more than a sketch uses. title, text: 0 if they are the
    kept page's.
    """

    original: int
    url: int
    host: int
    title: int
    text: int

    def pack(self) -> bytes:
        """Return the copy as 24 bytes, as the journal stores it."""
        return _COPY.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the copy that `pack` wrote."""
        return cls(*_COPY.unpack(packed))


class ClusterSizes(NamedTuple):
    """Estimated numbers of different pages, hosts, other titles and other texts among a kept page's copies."""

    pages: int = 0
    hosts: int = 0
    titles: int = 0
    texts: int = 0


class DuplicateClusters:
    """Clusters by the sequence of their kept page. packed: from `pack`. max_clusters: how many to keep."""

    def __init__(self, packed: bytes = b"", max_clusters: int = MAX_CLUSTERS) -> None:
        self._max_clusters = max_clusters
        rows = np.frombuffer(packed, _ROW)
        self._clusters: dict[int, bytes] = dict(zip(rows["original"].tolist(), rows["sketches"].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._clusters)

    def add(self, copy: Copy) -> ClusterSizes:
        """Add a copy to its cluster and return the new sizes."""
        # re-inserted at the end: the dictionary is ordered by the last growth
        old = self._clusters.pop(copy.original, None)
        if old is None:  # as below, in a quarter of the time: most pages have one copy
            title, text = copy.title, copy.text
            titles, texts = single(title) if title else EMPTY, single(text) if text else EMPTY
            self._clusters[copy.original] = single(copy.url) + single(copy.host) + titles + texts
            self._forget_stale()
            return ClusterSizes(1, 1, int(title != 0), int(text != 0))
        pages, hosts, titles, texts = old[:16], old[16:32], old[32:48], old[48:]
        pages, hosts = with_value(pages, copy.url), with_value(hosts, copy.host)
        titles = with_value(titles, copy.title) if copy.title else titles
        texts = with_value(texts, copy.text) if copy.text else texts
        self._clusters[copy.original] = pages + hosts + titles + texts
        self._forget_stale()
        return ClusterSizes(estimate(pages), estimate(hosts), estimate(titles), estimate(texts))

    def _forget_stale(self) -> None:
        if len(self._clusters) > self._max_clusters:
            for stale in list(islice(self._clusters, self._max_clusters // 4 or 1)):
                del self._clusters[stale]

    def drop(self, original: int) -> None:
        """Forget the cluster of a kept page, if it has one."""
        self._clusters.pop(original, None)

    def pack_after(self, sequences: int) -> bytes:
        """Return all clusters as `pack` does, of a log in which so many records come before them."""
        rows = np.frombuffer(bytearray(self.pack()), _ROW)
        rows["original"] += sequences
        return rows.tobytes()

    def pack(self) -> bytes:
        """Return all clusters as bytes, 72 each."""
        rows = np.empty(len(self._clusters), _ROW)
        rows["original"] = np.fromiter(self._clusters, np.int64, len(self._clusters))
        rows["sketches"] = np.frombuffer(b"".join(self._clusters.values()), _ROW["sketches"])
        return rows.tobytes()
