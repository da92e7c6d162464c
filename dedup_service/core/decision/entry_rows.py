"""The live entries as one flat array: what a snapshot stores and a restore returns.

Together with the rest of a decider's state (`DeciderState`) they are all that later verdicts depend on. A
snapshot therefore makes a restore faster and never changes its result.

Fields of ROW: sequence int64; words, body, body_hash, text_hash, url_hash uint64 (0 if absent); host
uint32; ordinal uint64; evidence_bytes uint32, of which keys_bytes uint16 are keys; flags uint8. The evidence
of all rows, each followed by its keys, is one byte string, in the order of the rows.
BODY_DECIDES says that a body is long enough for an equal one to be a copy under any title.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import size_of
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.match_row import LONG

_VALUES = ("words", "body", "body_hash", "text_hash", "url_hash")
ROW = np.dtype(
    [
        ("sequence", "<i8"),
        *((name, "<u8") for name in _VALUES),
        ("host", "<u4"),
        ("ordinal", "<u8"),
        ("evidence_bytes", "<u4"),
        ("keys_bytes", "<u2"),
        ("flags", "u1"),
    ]
)

_WORDS, _BODY, BODY_HASH, INDEXED, TEXT_HASH, SETTLED, BODY_DECIDES = 1, 2, 4, 8, 16, 32, 64
_WORD = (1 << 64) - 1


def signed(value: int | None) -> int | None:
    """Return the signed 64-bit integer with the bits of the unsigned `value`, as SQLite stores it."""
    return value - (1 << 64) if value is not None and value >= 1 << 63 else value


def unsigned(value: int | None) -> int | None:
    """Return the unsigned 64-bit integer with the bits of the signed `value`, as SQLite returned it."""
    return None if value is None else value & _WORD


def channel_flag(name: str) -> int:
    """Return the flag of ROW that says that a row has the fingerprint of channel `words` or `body`."""
    return _WORDS if name == "words" else _BODY


def flags_of(entry: Entry) -> int:
    """Return the flags of ROW: which values `entry` has, whether the block indexes have it, and what its body says."""
    return (
        (_WORDS if entry.words is not None else 0)
        | (_BODY if entry.body is not None else 0)
        | (BODY_HASH if entry.body_hash is not None else 0)
        | (INDEXED if entry.indexed else 0)
        | (TEXT_HASH if entry.text_hash is not None else 0)
        | (SETTLED if entry.settled else 0)
        | (BODY_DECIDES if entry.body_hash is not None and size_of(entry.evidence) >= LONG else 0)
    )


def page_flags(page: PreparedPage) -> int:
    """Return what `flags_of` returns of the entry that a page gets."""
    fingerprint = page.fingerprint
    return (
        (_WORDS if fingerprint.words is not None else 0)
        | (_BODY if fingerprint.body is not None else 0)
        | (BODY_HASH if page.body_hash is not None else 0)
        | (INDEXED if page.reason is None else 0)
        | (TEXT_HASH if page.text_hash is not None else 0)
        | (BODY_DECIDES if page.body_hash is not None and size_of(page.evidence) >= LONG else 0)
    )


@dataclass(frozen=True, eq=False)
class EntryRows:
    """Live entries in order of sequence. rows: ROW[n]; evidence: of all rows, end to end."""

    rows: npt.NDArray[Any]
    evidence: bytes = b""

    @classmethod
    def none(cls) -> Self:
        """Return no entries."""
        return cls(np.empty(0, ROW))

    @classmethod
    def from_entries(cls, entries: Sequence[Entry]) -> Self:
        """Return `entries` as rows; they are in order of sequence."""
        rows = np.empty(len(entries), ROW)  # by columns, which takes half the time of an array of tuples
        rows["sequence"] = [entry.sequence for entry in entries]
        rows["words"] = [entry.words or 0 for entry in entries]
        rows["body"] = [entry.body or 0 for entry in entries]
        rows["body_hash"] = [entry.body_hash or 0 for entry in entries]
        rows["text_hash"] = [entry.text_hash or 0 for entry in entries]
        rows["url_hash"] = [entry.url_hash for entry in entries]
        rows["host"] = [entry.host for entry in entries]
        rows["ordinal"] = [entry.ordinal for entry in entries]
        rows["evidence_bytes"] = [len(entry.evidence) + len(entry.keys) for entry in entries]
        rows["keys_bytes"] = [len(entry.keys) for entry in entries]
        rows["flags"] = [flags_of(entry) for entry in entries]
        return cls(rows, b"".join([part for entry in entries for part in (entry.evidence, entry.keys)]))

    @classmethod
    def in_order(cls, parts: Sequence[Self]) -> Self:
        """Return the entries of all parts, one or more, in order of their sequences."""
        rows = np.concatenate([part.rows for part in parts])
        evidence = b"".join([part.evidence for part in parts])
        starts = cls(rows).evidence_starts
        order = np.argsort(rows["sequence"], kind="stable")
        sizes = rows["evidence_bytes"].astype(np.int64)
        spans = zip(starts[order].tolist(), (starts + sizes)[order].tolist(), strict=True)
        return cls(rows[order], b"".join([evidence[start:end] for start, end in spans]))

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: npt.NDArray[np.bool_]) -> Self:
        """Return the entries for which mask: bool[n] is true."""
        evidence = self.evidence
        if evidence:
            byte_mask = np.repeat(mask, self.rows["evidence_bytes"])
            evidence = np.frombuffer(evidence, np.uint8)[byte_mask].tobytes()
        return type(self)(self.rows[mask], evidence)

    def pieces(self, size: int) -> Iterator[Self]:
        """Yield the entries `size` at a time, as views of these rows."""
        ends = np.append(self.evidence_starts, len(self.evidence)) if self.evidence else None
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            evidence = b"" if ends is None else self.evidence[ends[start] : ends[stop]]
            yield type(self)(self.rows[start:stop], evidence)

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Which entries have left the window: bool[n]."""
        settled: npt.NDArray[np.bool_] = (self.rows["flags"] & np.uint8(SETTLED)) != 0
        return settled

    @cached_property
    def evidence_starts(self) -> npt.NDArray[np.int64]:
        """Where each row's evidence begins: int64[n]."""
        sizes = self.rows["evidence_bytes"].astype(np.int64)
        return np.cumsum(sizes) - sizes

    def entries(self) -> Iterator[Entry]:
        """Yield all entries as values, without the numbers of their rows."""
        evidence = np.frombuffer(self.evidence, np.uint8)
        for row, start in zip(self.rows.tolist(), self.evidence_starts.tolist(), strict=True):
            yield entry_of(row, evidence, start)


EntryPieces = Iterable[EntryRows]
"""Entries in order of sequence, some thousands in each piece; can be iterated several times."""


def entry_of(row: tuple[int, ...], evidence: npt.NDArray[np.uint8], start: int, number: int = -1) -> Entry:
    """Return a row of ROW as a value; its evidence begins at `start` in evidence: uint8[n]. number: of the row."""
    size, keys_size = row[8:10]
    blob = evidence[start : start + size].tobytes()
    keys_start = size - keys_size
    return entry_in(row, blob[:keys_start], blob[keys_start:], number)


def entry_in(row: tuple[int, ...], evidence: bytes, keys: bytes, number: int = -1) -> Entry:
    """Return a row of ROW as a value, with evidence and keys from elsewhere. number: of the row."""
    sequence, words, body, body_hash, text_hash, url_hash, host, ordinal, _, _, flags = row
    return Entry(
        sequence,
        words if flags & _WORDS else None,
        body if flags & _BODY else None,
        body_hash if flags & BODY_HASH else None,
        url_hash,
        bool(flags & INDEXED),
        evidence,
        text_hash if flags & TEXT_HASH else None,
        host,
        ordinal,
        keys,
        bool(flags & SETTLED),
        number,
    )
