"""Entries: the kept pages that later pages are compared with.

An entry has everything that a decision needs of a kept page. A page that is too short to be judged has one,
too, but it is not `indexed`: its URL is known, and no fingerprint index finds it.
"""

from dataclasses import dataclass, field
from typing import Self

from dedup_service import _native
from dedup_service.core.features.simhash import hamming
from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import Distance


@dataclass(slots=True)
class Entry:
    """One kept page. Nobody changes it; it is not frozen because that would triple the time it takes to make one.

    sequence: its place in the log. words, body: fingerprints, unsigned 64-bit, None if absent. body_hash,
    text_hash, url_hash: of the exact form of the body, of title and body, and of the canonical URL, unsigned
    64-bit. host: 32-bit hash of the URL's host. indexed: whether the block indexes have it. ordinal: number of
    pages decided before it. keys: its keys, as the prepared page has them while the entry is in the window, and
    then its path through the cells (`core.index.cell_index`); `settled` says which. row: of a settled entry in its
    store, -1 of others.
    """

    sequence: int
    words: int | None
    body: int | None
    body_hash: int | None
    url_hash: int
    indexed: bool = True
    evidence: bytes = b""
    text_hash: int | None = None
    host: int = 0
    ordinal: int = 0
    keys: bytes = b""
    settled: bool = False
    row: int = field(default=-1, compare=False)

    @classmethod
    def from_page(cls, sequence: int, prepared: PreparedPage, url_hash: int, ordinal: int = 0) -> Self:
        """Return the entry of the page kept at `sequence`."""
        return cls(
            sequence,
            prepared.fingerprint.words,
            prepared.fingerprint.body,
            prepared.body_hash,
            url_hash,
            indexed=prepared.reason is None,
            evidence=prepared.evidence,
            text_hash=prepared.text_hash,
            host=host_hash(prepared.page.canonical_url),
            ordinal=ordinal,
            keys=prepared.keys,
        )

    def channel(self, name: str) -> int | None:
        """Return the fingerprint of channel `name` (`words` or `body`), or None."""
        return self.words if name == "words" else self.body

    def distance_to(self, other: Fingerprint) -> Distance:
        """Return the differing bits of each channel; None if either side has no fingerprint."""
        return Distance(words=_bits(self.words, other.words), body=_bits(self.body, other.body))


def _bits(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else hamming(a, b)


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was removed when `ordinal` was the latest page, and that the cells still need."""

    ordinal: int
    entry: Entry


def native_entry(entry: Entry) -> _native.Entry:
    """Return an entry as the native decider takes it."""
    return _native.Entry(
        entry.sequence,
        entry.words,
        entry.body,
        entry.body_hash,
        entry.url_hash,
        entry.indexed,
        entry.evidence,
        entry.text_hash,
        entry.host,
        entry.ordinal,
        entry.keys,
        entry.settled,
        entry.row,
    )


def entry_of_native(entry: _native.Entry) -> Entry:
    """Return an entry of the native decider."""
    return Entry(
        entry.sequence,
        entry.words,
        entry.body,
        entry.body_hash,
        entry.url_hash,
        entry.indexed,
        entry.evidence,
        entry.text_hash,
        entry.host,
        entry.ordinal,
        entry.keys,
        entry.settled,
        entry.row,
    )
