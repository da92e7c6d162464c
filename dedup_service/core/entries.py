"""The kept pages that later ones are compared with.

An entry is everything a decision needs of a kept page; the table holds the live ones by sequence.
A page too short to be judged has an entry too, not `indexed`: its URL is known, its text matches nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from dedup_service.core.fingerprint import Fingerprint, PreparedPage
from dedup_service.core.verdict import Distance

__all__ = ["Entry", "EntryTable"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One kept page: its place, its fingerprints (unsigned 64-bit), the hashes of its body and of its canonical URL."""

    sequence: int
    words: int | None
    body: int | None
    body_hash: int | None
    url_hash: int
    indexed: bool = True
    metadata: bytes = b""

    @classmethod
    def of(cls, sequence: int, prepared: PreparedPage, url_hash: int) -> Self:
        """The entry of `prepared`, kept at `sequence`."""
        return cls(
            sequence,
            prepared.fingerprint.words,
            prepared.fingerprint.body,
            prepared.body_hash,
            url_hash,
            indexed=prepared.reason is None,
            metadata=prepared.metadata,
        )

    def channel(self, name: str) -> int | None:
        """The fingerprint of channel `name`."""
        return self.words if name == "words" else self.body

    def distance_to(self, other: Fingerprint) -> Distance:
        """The differing bits per channel; None where either side has no fingerprint."""
        return Distance(words=_bits(self.words, other.words), body=_bits(self.body, other.body))


class EntryTable:
    """The live entries by sequence."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, sequence: int) -> Entry:
        return self._entries[sequence]

    def get(self, sequence: int) -> Entry | None:
        """The entry at `sequence`, or None."""
        return self._entries.get(sequence)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries, none of which is there yet."""
        self._entries.update((entry.sequence, entry) for entry in entries)

    def remove(self, sequence: int) -> None:
        """Take one out; KeyError where it is not there."""
        del self._entries[sequence]

    def live(self) -> list[Entry]:
        """All entries in order of sequence."""
        return [self._entries[sequence] for sequence in sorted(self._entries)]


def _bits(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else (a ^ b).bit_count()
