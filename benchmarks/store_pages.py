"""Generated prepared pages for benchmarks of a large state: any page from its number, some microseconds each.

Everything of a page is a hash of its number (SplitMix64), so a copy of any earlier page is made without keeping any.
Distributions are those of the development stream, at
13,361 kept pages of 16,936:

- keys: 64 a page, of which COMMON are keys that other pages have, too, the r-th most frequent with probability
  proportional to r^-1/2 among COMMON_KEYS; a page has between a third of that share and three times it. This gives the
  shares of keys that several pages have at 200, 400, … 13,361 pages (0.02 to 0.18; measured 0.015 to 0.196), and 4% of
  the entries below the first level of the cells (measured 3.8%). Larger states than that were not measured.
- evidence: 463 bytes, with 24 sentences, 12 terms and 18 numbers (measured 467; 24.6, 11.9, 18.6). Bits of sketches
  are 1 with probability .59, so that the sieve lets 6.4% of unrelated entries through (measured 6.8%).
- fingerprints: one page in 1,657 has one of those that several pages have.
- copies: every fifth page is a copy of a page before it, any with the same probability, under an address at another
  host. One in six has the same text (measured: 17%), of the others 3% of the sketch and 5% of the keys differ.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service._native import Entry
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.kernels import kernel_inline, long_kernel
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.splitmix import GAMMA, mix64, mix64_in_kernel

COPIES = 5
"""One page of so many is a copy."""

EXACT = 6
"""One copy of so many has the same text."""

COMMON, COMMON_KEYS = 0.2, 68_000
CHANGED_KEYS = 0.05
SHARED_FINGERPRINT, SHARED_FINGERPRINTS = 1657, 1000
SITE_PAGES = 1000

SENTENCES, SITE_SENTENCES, TERMS, NUMBERS = 24, 2, 12, 18
LETTERS, SHINGLES = 1014, 930

_HEADER = struct.Struct("<IIIIIQBBBH")
_FIGURES_AT, _SKETCH_AT, _SKETCH_WORDS = 20, _HEADER.size, 32
_SENTENCES_AT = _SKETCH_AT + 8 * _SKETCH_WORDS
_TERMS_AT = _SENTENCES_AT + 4 * SENTENCES
_NUMBERS_AT = _TERMS_AT + 2 * TERMS
EVIDENCE_BYTES = _NUMBERS_AT + 3 * NUMBERS
_HEADER_BYTES = np.frombuffer(
    _HEADER.pack(LETTERS, LETTERS, SHINGLES, NUMBERS, SENTENCES, 0, NUMBERS, SENTENCES, TERMS, 0), np.uint8
)

_WORD = (1 << 64) - 1
_S11, _S20, _S32 = np.uint64(11), np.uint64(20), np.uint64(32)
_UNIT = 2.0**-53
_OWN_GAP = 2.0**32 / (SHINGLES / PARTS)
"""Mean distance of the least hashes of the shingles of one part."""


Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StreamPages:
    """A stream in which every COPIES-th page is a copy. pages: of it, before which there are no others."""

    pages: int

    @property
    def originals(self) -> int:
        """How many of the pages are no copies."""
        return self.pages - self.pages // COPIES

    @property
    def sites(self) -> int:
        """Hosts of the pages: as many as the development stream has, or one for SITE_PAGES."""
        return max(60, self.pages // SITE_PAGES)

    def page_numbers(self, first: int, stop: int) -> tuple[Integers, Integers]:
        """Return the numbers of the texts of pages first … stop - 1, and of each the number of the copy or 0."""
        places = np.arange(first, stop, dtype=np.int64)
        copies = places % COPIES == COPIES - 1
        numbers = places - places // COPIES
        numbers[copies] = (mixed(places[copies], 1) % numbers[copies].astype(np.uint64)).astype(np.int64)
        return numbers, np.where(copies, places // COPIES + 1, 0)

    def prepared(self, first: int, stop: int) -> list[PreparedPage]:
        """Return pages first … stop - 1, prepared."""
        numbers, copies = self.page_numbers(first, stop)
        evidence, keys = self.contents(numbers, copies)
        edits = np.where(copies % EXACT > 0, copies, 0).astype(np.uint64)
        words = words_of(numbers)
        words ^= edits & np.uint64(0x0000_0100_0010_0001)  # 3 bits at most
        bodies, texts = mixed(numbers, 4) ^ edits, mixed(numbers, 5) ^ edits
        hosts = np.where(copies > 0, (numbers + copies) % self.sites, numbers % self.sites)
        columns = (column.tolist() for column in (numbers, copies, hosts, words, bodies, texts))
        bytes_of_each = ([row.tobytes() for row in rows] for rows in (evidence, keys))
        return [_page(*values) for values in zip(*columns, *bytes_of_each, strict=True)]

    def kept(self, first: int, stop: int) -> list[Entry]:
        """Return texts first … stop - 1 as entries, as if they were pages that came first of all and were kept."""
        numbers = np.arange(first, stop, dtype=np.int64)
        evidence, keys = self.contents(numbers, np.zeros_like(numbers))
        words, hosts = words_of(numbers), mixed(numbers % self.sites, 7) >> _S32
        hashes = (mixed(numbers, salt).tolist() for salt in (4, 5, 6))
        columns = (numbers.tolist(), words.tolist(), (~words).tolist(), hosts.tolist(), *hashes)
        bytes_of_each = ([row.tobytes() for row in rows] for rows in (evidence, keys))
        return [
            Entry(number + 1, one, body, body_hash, url_hash, True, packed, text_hash, host, number, packed_keys)
            for number, one, body, host, body_hash, text_hash, url_hash, packed, packed_keys in zip(
                *columns, *bytes_of_each, strict=True
            )
        ]

    def contents(self, numbers: Integers, copies: Integers) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
        """Return evidence uint8[n, EVIDENCE_BYTES] and keys uint32[n, PARTS, LEVELS] of texts, or of copies of them."""
        evidence = np.empty((len(numbers), EVIDENCE_BYTES), np.uint8)
        keys = np.empty((len(numbers), PARTS, LEVELS), np.uint32)
        write_contents(numbers, copies, self.sites, _HEADER_BYTES, evidence, keys)
        return evidence, keys


def _page(
    number: int, copy: int, host: int, words: int, body_hash: int, text_hash: int, evidence: bytes, keys: bytes
) -> PreparedPage:
    url = f"https://site{host:06}.example/{2000 + number % 27}/{number:09}{f'-{copy}' if copy else ''}"
    page = Page(
        url=url, canonical_url=url, id=f"{number}-{copy}", title=f"title of a generated page, number {number:09}"
    )
    return PreparedPage(page, Fingerprint(words, ~words & _WORD), body_hash, evidence, None, text_hash, keys)


def words_of(numbers: Integers) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of texts: uint64[n]."""
    words = mixed(numbers, 2)
    shared = words % np.uint64(SHARED_FINGERPRINT) == 0
    words[shared] = mixed(words[shared] % np.uint64(SHARED_FINGERPRINTS), 3)
    return words


def mixed(values: npt.NDArray[Any], salt: int) -> npt.NDArray[np.uint64]:
    """Return random numbers of values: uint64[n]."""
    return mix64(values.astype(np.uint64) * np.uint64(8) + np.uint64(salt) + GAMMA)


@kernel_inline
def hash_at(seed: np.uint64, place: int) -> np.uint64:
    """Return one of the random words of a seed."""
    return mix64_in_kernel(seed + np.uint64(place + 1) * GAMMA)


@kernel_inline
def unit_at(seed: np.uint64, place: int) -> float:
    """Return one of the random numbers of a seed, 0 to below 1."""
    return np.float64(hash_at(seed, place) >> _S11) * _UNIT


@long_kernel
def write_contents(
    numbers: Integers,
    copies: Integers,
    sites: int,
    header: npt.NDArray[np.uint8],
    evidence: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint32],
) -> None:
    """Write evidence uint8[n, EVIDENCE_BYTES] and keys uint32[n, PARTS, LEVELS] of the texts int64[n].

    copies: 0 for an original, or the number of the copy, of which one in EXACT has the same text.
    """
    for page in range(len(numbers)):
        number = np.uint64(numbers[page])
        seed = mix64_in_kernel((number + np.uint64(1)) << _S20)
        edit = copies[page] if copies[page] % EXACT else 0
        changed = mix64_in_kernel(np.uint64(edit) * GAMMA)
        site = mix64_in_kernel(number % np.uint64(sites) + np.uint64(77))
        evidence[page, : len(header)] = header
        put(evidence[page], _FIGURES_AT, number * GAMMA, 8)
        write_sketch(seed, changed, edit, evidence[page])
        write_samples(seed, site, evidence[page])
        write_keys(seed, changed, edit, keys[page])


@kernel_inline
def write_sketch(seed: np.uint64, changed: np.uint64, edit: int, row: npt.NDArray[np.uint8]) -> None:
    """Write the bits of a sketch, 1/32 of them changed in an edited copy."""
    for word in range(_SKETCH_WORDS):
        at = 8 * word
        half = hash_at(seed, at + 3) | hash_at(seed, at + 4)
        bits = hash_at(seed, at) | (hash_at(seed, at + 1) & hash_at(seed, at + 2) & half)
        if edit:
            flips = hash_at(changed, at) & hash_at(changed, at + 1) & hash_at(changed, at + 2)
            bits ^= flips & hash_at(changed, at + 3) & hash_at(changed, at + 4)
        put(row, _SKETCH_AT + at, bits, 8)


@kernel_inline
def write_samples(seed: np.uint64, site: np.uint64, row: npt.NDArray[np.uint8]) -> None:
    """Write sentences, terms and numbers, all ascending."""
    step = (1 << 32) // (SENTENCES + 1)
    for at in range(SENTENCES):
        drawn = hash_at(site if at < SITE_SENTENCES else seed, 300 + at) % np.uint64(step)
        put(row, _SENTENCES_AT + 4 * at, np.uint64(at * step) + drawn, 4)
    for at in range(TERMS):
        put(row, _TERMS_AT + 2 * at, np.uint64(5400 * at) + hash_at(seed, 330 + at) % np.uint64(5400), 2)
    for at in range(NUMBERS):
        put(row, _NUMBERS_AT + 2 * at, np.uint64(3600 * at) + hash_at(seed, 350 + at) % np.uint64(3600), 2)
        row[_NUMBERS_AT + 2 * NUMBERS + at] = hash_at(seed, 370 + at) & np.uint64(255)


@kernel_inline
def write_keys(seed: np.uint64, changed: np.uint64, edit: int, keys: npt.NDArray[np.uint32]) -> None:
    """Write keys, those of a part ascending: some common ones, the others as far apart as hashes of a text are."""
    share = COMMON * (0.4 + 3.0 * unit_at(seed, 390) ** 4)
    for part in range(PARTS):
        own = 0.0
        for level in range(LEVELS):
            at = 400 + 4 * (part * LEVELS + level)
            own += -np.log(1.0 - unit_at(seed, at)) * _OWN_GAP
            key = np.uint64(min(own, 4e9))
            if unit_at(seed, at + 1) < share:
                rank = np.uint64(unit_at(seed, at + 2) ** 2 * COMMON_KEYS / PARTS)
                key = hash_at(rank, part) % np.uint64(LEVELS * _OWN_GAP)
            elif edit and unit_at(changed, at) < CHANGED_KEYS:
                key = hash_at(changed, at + 1) >> _S32
            place = level
            while place > 0 and keys[part, place - 1] > key:
                keys[part, place] = keys[part, place - 1]
                place -= 1
            keys[part, place] = max(key, np.uint64(1))


@kernel_inline
def put(row: npt.NDArray[np.uint8], start: int, value: np.uint64, size: int) -> None:
    """Write a little-endian number of `size` bytes."""
    for byte in range(size):
        row[start + byte] = value & np.uint64(255)
        value >>= np.uint64(8)
