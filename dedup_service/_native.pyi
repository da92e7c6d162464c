"""The native core: the tables in which kept pages are found (the crate in `native`).

Numbers come in arrays of numpy, or anything else with a buffer of the type that is named; what is returned as bytes
has native byte order. A value outside its range raises ConfigurationError, one that the table contradicts StateError, a
fault of this module InternalError: the table is of no use then.
The interpreter lock is released while a batch is worked on. No class is thread-safe.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

Buffer: TypeAlias = npt.NDArray[Any]

CROWD: int
"""Rows of one hash that `HashRows.rows_many` returns at most."""

class NearRows:
    """Rows within the radius of n fingerprints, by distance and row.

    offsets: int64[n + 1]; those of fingerprint i are at offsets[i]:offsets[i + 1]. rows: uint32[m]; distances:
    uint8[m], in bits.
    """

    offsets: bytes
    rows: bytes
    distances: bytes

class HammingIndex:
    """Rows by a fingerprint of 64 bits, found by Hamming distance, exactly for 0 to 7 bits."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def insert(self, rows: Buffer, fingerprints: Buffer) -> None:
        """Insert rows, uint32[n], with their fingerprints, uint64[n]; StateError, and none is, if one is there."""

    def remove(self, rows: Buffer, fingerprints: Buffer) -> None:
        """Remove rows, uint32[n], with their fingerprints, uint64[n]; StateError, and none is, if one is missing."""

    def probe(self, fingerprints: Buffer, radius: int, most_identical: int) -> NearRows:
        """Find rows near fingerprints: uint64[n]. most_identical: rows of one fingerprint at most, the first ones."""

    def statistics(self) -> tuple[int, int, int, int, int, int]:
        """Return rows, distinct fingerprints, bytes, largest bucket, split buckets, buckets of a table."""

    def work(self) -> tuple[int, int, int]:
        """Return what all probes took so far: fingerprints, buckets read, lanes compared."""

class RowsFound:
    """Rows of n hashes, ascending. offsets: int64[n + 1], as of `NearRows`. rows: uint32[m]."""

    offsets: bytes
    rows: bytes

class HashRows:
    """Rows by hashes of 64 bits, of which the first 41 find them: the caller confirms the rest."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Memory reserved."""

    def rows(self, value: int) -> list[int]:
        """Return all rows of a hash, ascending."""

    def rows_many(self, hashes: Buffer) -> RowsFound:
        """Return the rows of hashes, uint64[n]; of a crowd the first `CROWD`."""

    def add(self, hashes: Buffer, rows: Buffer) -> None:
        """Add a row, uint32[n], to each hash, uint64[n], unless it has it."""

    def remove(self, hashes: Buffer, rows: Buffer) -> None:
        """Remove a row from each hash; StateError for the first that does not have it; earlier ones are removed."""

class CellAnswers:
    """What n pages found in the cells, and where m changes went.

    offsets: int64[n + 1]; rows: uint32[k]; probed: int64[n]; paths: of m changes, b"" of removals.
    """

    offsets: bytes
    rows: bytes
    probed: bytes
    paths: list[bytes]

class CellIndex:
    """Rows by the keys of their pages. slots: 1 to 64; levels: keys of each part, 1 to 32."""

    def __init__(self, slots: int, levels: int) -> None: ...
    def __len__(self) -> int: ...
    def restore(self, rows: Buffer, ordinals: Buffer, sieves: Buffer, paths: bytes) -> None:
        """Put rows, uint32[n], back by their paths, end to end. ordinals: int64[n]; sieves: uint64[n, 2].

        StateError if the paths are cut off or too long: nothing changed.
        """

    def follow(
        self,
        rows: Buffer,
        ordinals: Buffer,
        removes: Buffer,
        keys: Buffer,
        sieves: Buffer,
        paths: Sequence[bytes],
        due: Buffer,
        page_keys: Buffer,
        page_sieves: Buffer,
    ) -> CellAnswers:
        """Apply changes, and probe pages between them: page i after the first due[i] changes.

        Of changes: rows uint32[m], ordinals int64[m], removes uint8[m], keys uint32[m, 8, levels], sieves uint64[m, 2],
        paths. Of pages: due int64[n], page_keys uint32[n, 8, levels], page_sieves uint64[n, 2].
        StateError if a removal is not as its path says: earlier changes are applied.
        """

    def release_sieves(self, first: int, end: int) -> None:
        """Give back the memory of the sieves of rows first to end - 1, as far as they fill chunks."""

    def statistics(self) -> tuple[int, int, int, int, int]:
        """Return rows in cells, cells, cells that turned rows away, bytes, and bytes of sieves among them."""

class HammingFilling:
    """Many rows for an empty index: each bucket is laid out once. `add` as `HammingIndex.insert`."""

    def __init__(self) -> None: ...
    def add(self, rows: Buffer, fingerprints: Buffer) -> None: ...
    def finish(self) -> HammingIndex:
        """Return the index; StateError if a row came twice."""

class HashFilling:
    """Many rows for an empty table, about so many as expected: each part is laid out once. `add` as of `HashRows`."""

    def __init__(self, expected: int) -> None: ...
    def add(self, hashes: Buffer, rows: Buffer) -> None: ...
    def finish(self, threads: int) -> HashRows:
        """Return the table, once. threads: how many work on it."""

class CellFilling:
    """Many rows for an empty index, about so many as expected: each part is laid out once.

    `add` as `CellIndex.restore`; path i is data[starts[i]:ends[i]], int64[n] each.
    """

    def __init__(self, slots: int, levels: int, expected: int) -> None: ...
    def add(
        self, rows: Buffer, ordinals: Buffer, sieves: Buffer, data: bytes, starts: Buffer, ends: Buffer
    ) -> None: ...
    def finish(self, threads: int) -> CellIndex:
        """Return the index, once. threads: how many work on it."""

def block_bounds(radius: int) -> list[tuple[int, int]]:
    """Return of each of the four tables in how many bits its block and the next one may differ; -1: not asked."""

def panic_on_purpose(message: str) -> None:
    """Raise InternalError as a fault of this module would, for tests."""
