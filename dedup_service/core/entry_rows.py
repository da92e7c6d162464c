"""The live entries as one flat array: what a snapshot holds and a restore hands over.

A fold of the log: a record may add an entry (its own) and may take one out (`removes`). Folding the rest
of a log over the entries at some sequence gives the entries at its end, wherever the cut is; so a snapshot
changes how fast a restore is, never what it gives.

Fields: sequence int64; words, body, body_hash, url_hash uint64 (0 where absent); metadata_bytes uint32;
flags uint8. Metadata of all rows stands in one byte string, in row order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.entries import Entry

__all__ = ["ROW", "EntryRows", "entry_of", "flags_of", "signed"]

_VALUES = ("words", "body", "body_hash", "url_hash")
ROW = np.dtype([("sequence", "<i8"), *((name, "<u8") for name in _VALUES), ("metadata_bytes", "<u4"), ("flags", "u1")])
_SIGNED_ROW = np.dtype(
    [("sequence", "<i8"), *((name, "<i8") for name in _VALUES), ("metadata_bytes", "<u4"), ("flags", "u1")]
)

Chunk = list[tuple[Any, ...]]

_WORDS, _BODY, _BODY_HASH, _INDEXED = 1, 2, 4, 8


def signed(value: int | None) -> int | None:
    """Return the signed 64-bit integer with the bits of the unsigned `value`, as SQLite stores it."""
    return value - (1 << 64) if value is not None and value >= 1 << 63 else value


def flags_of(entry: Entry) -> int:
    """Which values `entry` has, and whether the indexes hold it."""
    return (
        (_WORDS if entry.words is not None else 0)
        | (_BODY if entry.body is not None else 0)
        | (_BODY_HASH if entry.body_hash is not None else 0)
        | (_INDEXED if entry.indexed else 0)
    )


@dataclass(frozen=True, eq=False)
class EntryRows:
    """Live entries in order of sequence. rows: ROW[n]; metadata: their metadata, end to end."""

    rows: npt.NDArray[Any]
    metadata: bytes = b""

    @classmethod
    def none(cls) -> Self:
        """No entries."""
        return cls(np.empty(0, ROW))

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """Return the entries given in order of sequence."""
        rows = [
            (e.sequence, e.words or 0, e.body or 0, e.body_hash or 0, e.url_hash, len(e.metadata), flags_of(e))
            for e in entries
        ]
        return cls(np.array(rows, dtype=ROW), b"".join(entry.metadata for entry in entries))

    @classmethod
    def of_log(cls, entries: Iterable[Chunk], metadata: Iterable[Chunk]) -> Self:
        """Return the entries in log rows, in chunks: the columns of ROW, but signed; (metadata,) rows."""
        rows = [np.array(chunk, dtype=_SIGNED_ROW) for chunk in entries]
        blob = b"".join(value for chunk in metadata for (value,) in chunk)
        return cls(np.concatenate([np.empty(0, _SIGNED_ROW), *rows]).view(ROW), blob)

    def __len__(self) -> int:
        return len(self.rows)

    def followed_by(self, added: Self, removed: Iterable[int]) -> Self:
        """Return these entries, then those that later records `added`, without those that they `removed`."""
        rows = np.concatenate([self.rows, added.rows])
        metadata = self.metadata + added.metadata
        gone = np.fromiter(removed, dtype=np.int64)
        if not len(gone):
            return type(self)(rows, metadata)
        return type(self)(rows, metadata).where(~np.isin(rows["sequence"], gone))

    def where(self, stays: npt.NDArray[np.bool_]) -> Self:
        """Return the entries for which `stays`: bool[n] is true."""
        metadata = self.metadata
        if metadata:
            of_byte = np.repeat(stays, self.rows["metadata_bytes"])
            metadata = np.frombuffer(metadata, np.uint8)[of_byte].tobytes()
        return type(self)(self.rows[stays], metadata)

    def pieces(self, size: int) -> Iterator[Self]:
        """Yield the entries `size` at a time, as views of these rows."""
        ends = np.append(self.metadata_starts, len(self.metadata)) if self.metadata else None
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            metadata = b"" if ends is None else self.metadata[ends[start] : ends[stop]]
            yield type(self)(self.rows[start:stop], metadata)

    def indexed(self, channel: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return what the index of `channel` holds: sequences int64[m], fingerprints uint64[m]."""
        wanted = np.uint8(_INDEXED | (_WORDS if channel == "words" else _BODY))
        held = self.rows[(self.rows["flags"] & wanted) == wanted]
        return held["sequence"].astype(np.int64), held[channel].astype(np.uint64)

    @cached_property
    def metadata_starts(self) -> npt.NDArray[np.int64]:
        """Where each row's metadata begins: int64[n]."""
        sizes = self.rows["metadata_bytes"].astype(np.int64)
        return np.cumsum(sizes) - sizes

    def entries(self) -> Iterator[Entry]:
        """Yield all entries as values."""
        metadata = np.frombuffer(self.metadata, np.uint8)
        for row, start in zip(self.rows, self.metadata_starts.tolist(), strict=True):
            yield entry_of(row.item(), metadata, start)


def entry_of(row: tuple[int, ...], metadata: npt.NDArray[np.uint8], start: int) -> Entry:
    """Return a row of ROW as a value; its metadata begins at `start` in metadata: uint8[n]."""
    sequence, words, body, body_hash, url_hash, size, flags = row
    return Entry(
        sequence,
        words if flags & _WORDS else None,
        body if flags & _BODY else None,
        body_hash if flags & _BODY_HASH else None,
        url_hash,
        bool(flags & _INDEXED),
        metadata[start : start + size].tobytes(),
    )
