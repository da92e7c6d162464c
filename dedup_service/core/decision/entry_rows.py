"""The live entries as one flat array: what a snapshot holds and a restore hands over.

A fold of the log: a record may add an entry (its own) and may take one out (`removes`). Folding the rest
of a log over the entries at some sequence gives the entries at its end, wherever the cut is; so a snapshot
changes how fast a restore is, never what it gives.

Fields: sequence int64; words, body, body_hash, url_hash uint64 (0 where absent); evidence_bytes uint32;
flags uint8. Metadata of all rows stands in one byte string, in row order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import keys_of

__all__ = ["ROW", "EntryRows", "entry_of", "flags_of", "signed"]

_VALUES = ("words", "body", "body_hash", "url_hash")
ROW = np.dtype([("sequence", "<i8"), *((name, "<u8") for name in _VALUES), ("evidence_bytes", "<u4"), ("flags", "u1")])
_SIGNED_ROW = np.dtype(
    [("sequence", "<i8"), *((name, "<i8") for name in _VALUES), ("evidence_bytes", "<u4"), ("flags", "u1")]
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
    """Live entries in order of sequence. rows: ROW[n]; evidence: their evidence, end to end."""

    rows: npt.NDArray[Any]
    evidence: bytes = b""

    @classmethod
    def none(cls) -> Self:
        """No entries."""
        return cls(np.empty(0, ROW))

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """Return the entries given in order of sequence."""
        rows = [
            (e.sequence, e.words or 0, e.body or 0, e.body_hash or 0, e.url_hash, len(e.evidence), flags_of(e))
            for e in entries
        ]
        return cls(np.array(rows, dtype=ROW), b"".join(entry.evidence for entry in entries))

    @classmethod
    def of_log(cls, entries: Iterable[Chunk], evidence: Iterable[Chunk]) -> Self:
        """Return the entries in log rows, in chunks: the columns of ROW, but signed; (evidence,) rows."""
        rows = [np.array(chunk, dtype=_SIGNED_ROW) for chunk in entries]
        blob = b"".join(value for chunk in evidence for (value,) in chunk)
        return cls(np.concatenate([np.empty(0, _SIGNED_ROW), *rows]).view(ROW), blob)

    def __len__(self) -> int:
        return len(self.rows)

    def followed_by(self, added: Self, removed: Iterable[int]) -> Self:
        """Return these entries, then those that later records `added`, without those that they `removed`."""
        rows = np.concatenate([self.rows, added.rows])
        evidence = self.evidence + added.evidence
        gone = np.fromiter(removed, dtype=np.int64)
        if not len(gone):
            return type(self)(rows, evidence)
        return type(self)(rows, evidence).where(~np.isin(rows["sequence"], gone))

    def where(self, stays: npt.NDArray[np.bool_]) -> Self:
        """Return the entries for which `stays`: bool[n] is true."""
        evidence = self.evidence
        if evidence:
            of_byte = np.repeat(stays, self.rows["evidence_bytes"])
            evidence = np.frombuffer(evidence, np.uint8)[of_byte].tobytes()
        return type(self)(self.rows[stays], evidence)

    def pieces(self, size: int) -> Iterator[Self]:
        """Yield the entries `size` at a time, as views of these rows."""
        ends = np.append(self.evidence_starts, len(self.evidence)) if self.evidence else None
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            evidence = b"" if ends is None else self.evidence[ends[start] : ends[stop]]
            yield type(self)(self.rows[start:stop], evidence)

    def indexed(self, channel: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return what the index of `channel` holds: sequences int64[m], fingerprints uint64[m]."""
        wanted = np.uint8(_INDEXED | (_WORDS if channel == "words" else _BODY))
        held = self.rows[(self.rows["flags"] & wanted) == wanted]
        return held["sequence"].astype(np.int64), held[channel].astype(np.uint64)

    def keyed(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Return what the index of keys holds: sequences int64[m], keys uint32[m, KEYS], of those with evidence."""
        sizes = self.rows["evidence_bytes"].astype(np.int64)
        found, keys = keys_of(np.frombuffer(self.evidence, np.uint8), self.evidence_starts, sizes)
        return self.rows["sequence"][found].astype(np.int64), keys

    @cached_property
    def evidence_starts(self) -> npt.NDArray[np.int64]:
        """Where each row's evidence begins: int64[n]."""
        sizes = self.rows["evidence_bytes"].astype(np.int64)
        return np.cumsum(sizes) - sizes

    def entries(self) -> Iterator[Entry]:
        """Yield all entries as values."""
        evidence = np.frombuffer(self.evidence, np.uint8)
        for row, start in zip(self.rows, self.evidence_starts.tolist(), strict=True):
            yield entry_of(row.item(), evidence, start)


def entry_of(row: tuple[int, ...], evidence: npt.NDArray[np.uint8], start: int) -> Entry:
    """Return a row of ROW as a value; its evidence begins at `start` in evidence: uint8[n]."""
    sequence, words, body, body_hash, url_hash, size, flags = row
    return Entry(
        sequence,
        words if flags & _WORDS else None,
        body if flags & _BODY else None,
        body_hash if flags & _BODY_HASH else None,
        url_hash,
        bool(flags & _INDEXED),
        evidence[start : start + size].tobytes(),
    )
