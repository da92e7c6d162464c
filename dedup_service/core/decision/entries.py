"""The kept pages that later ones are compared with.

An entry is everything a decision needs of a kept page. A page too short to be judged has one too, not
`indexed`: its URL is known, its text matches nobody.
"""

from dataclasses import dataclass
from typing import Self

from dedup_service.core.features.simhash import hamming
from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.verdict import Distance

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One kept page: its place, its fingerprints (unsigned 64-bit), the hashes of its body and of its canonical URL."""

    sequence: int
    words: int | None
    body: int | None
    body_hash: int | None
    url_hash: int
    indexed: bool = True
    evidence: bytes = b""

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
            evidence=prepared.evidence,
        )

    def channel(self, name: str) -> int | None:
        """The fingerprint of channel `name`."""
        return self.words if name == "words" else self.body

    def distance_to(self, other: Fingerprint) -> Distance:
        """The differing bits per channel; None where either side has no fingerprint."""
        return Distance(words=_bits(self.words, other.words), body=_bits(self.body, other.body))


def _bits(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else hamming(a, b)
