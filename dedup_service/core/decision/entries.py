"""Entries: the kept pages that later pages are compared with.

An entry (`_native.Entry`) has everything that a decision needs of a kept page. A page that is too short to be judged
has one, too, but it is not `indexed`: its URL is known, and no fingerprint index finds it.
"""

from dataclasses import dataclass

from dedup_service._native import Entry
from dedup_service.core.features.simhash import hamming
from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import Distance

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was removed when `ordinal` was the latest page, and that the cells still need."""

    ordinal: int
    entry: Entry


def entry_of_page(sequence: int, prepared: PreparedPage, url_hash: int, ordinal: int = 0) -> Entry:
    """Return the entry of the page kept at `sequence`."""
    return Entry(
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


def page_flags(prepared: PreparedPage) -> int:
    """Return the flags that the entry of a page has before it is settled."""
    words, body, indexed = prepared.fingerprint.words, prepared.fingerprint.body, prepared.reason is None
    return Entry(0, words, body, prepared.body_hash, 0, indexed, prepared.evidence, prepared.text_hash).flags


def distance_between(one: Entry | Fingerprint, other: Entry | Fingerprint) -> Distance:
    """Return the differing bits of each channel; None if either side has no fingerprint."""
    return Distance(words=_bits(one.words, other.words), body=_bits(one.body, other.body))


def _bits(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else hamming(a, b)


def signed(value: int | None) -> int | None:
    """Return the signed 64-bit integer with the bits of the unsigned `value`, as SQLite stores it."""
    return value - (1 << 64) if value is not None and value >= 1 << 63 else value


def unsigned(value: int | None) -> int | None:
    """Return the unsigned 64-bit integer with the bits of the signed `value`, as SQLite returned it."""
    return None if value is None else value & _WORD
