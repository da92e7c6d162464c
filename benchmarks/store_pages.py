"""Generated prepared pages for benchmarks of a large state: any page from its number, some ten microseconds each.

Everything of a page is a hash of its number (SplitMix64), so a copy of any earlier page is made without keeping any.
Distributions are those of the development stream, at
13,361 kept pages of 16,936:

- keys: 64 a page, of which COMMON are keys that other pages have, too, the r-th most frequent with probability
  proportional to r^-1/2 among COMMON_KEYS; a page has between a third of that share and three times it. This gives the
  shares of keys that several pages have at 200, 400, … 13,361 pages (0.02 to 0.18; measured 0.015 to 0.196), and 4% of
  the entries below the first level of the cells (measured 3.8%). Larger states than that were not measured.
- evidence: 718 bytes, with 880 tokens, 24 sentences, 12 terms and 18 numbers (measured 745; 915, 24.6, 11.9, 18.6).
  Bits of sketches are 1 with probability .59, so that the sieve lets 6.4% of unrelated entries through (measured 6.8%).
- fingerprints: one page in 1,657 has one of those that several pages have.
- copies: every fifth page is a copy of a page before it, any with the same probability, under an address at another
  host. One in six has the same text (measured: 17%), of the others 3% of the sketch, 5% of the keys and 2% of the
  tokens differ.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service._native import Entry
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.page import Fingerprint, Page, PreparedPage

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
SKETCH_WORDS, TOKENS_A_WORD, TOKEN_WORDS = 8, 16, 55

_EVIDENCE = np.dtype(
    [
        ("letters", "<u4", 2),
        ("counts", "<u4", 3),
        ("figures", "<u8"),
        ("stored", "u1", 3),
        ("metadata_bytes", "<u2"),
        ("sketch", "<u8", SKETCH_WORDS),
        ("sentences", "<u4", SENTENCES),
        ("terms", "<u2", TERMS),
        ("numbers", "<u2", NUMBERS),
        ("stream_flags", "u1", 2),
        ("tokens", "<u2"),
        ("more_tokens", "u1"),
        ("kept_tokens", "<u2"),
        ("stream", "<u8", TOKEN_WORDS),
    ]
)
"""Packed evidence without metadata. counts: of 5-grams, numbers and sentences; stored: of numbers, sentences, terms.

A token of the stream is a character in 4 bits.
"""

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_WORD = (1 << 64) - 1
_S11, _S20, _S32 = np.uint64(11), np.uint64(20), np.uint64(32)
_UNIT = 2.0**-53
_OWN_GAP = 2.0**32 / (SHINGLES / PARTS)
"""Mean distance of the least hashes of the shingles of one part."""

Words = npt.NDArray[np.uint64]
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

    def contents(self, numbers: Integers, copies: Integers) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint32]]:
        """Return packed evidence and keys uint32[n, PARTS, LEVELS] of the texts int64[n], or of copies of them.

        copies: 0 for an original, or the number of the copy, of which one in EXACT has the same text.
        """
        seeds = mix64((numbers.astype(np.uint64) + np.uint64(1)) << _S20)
        edits = np.where(copies % EXACT > 0, copies, 0).astype(np.uint64)
        changes = mix64(edits * GAMMA)
        evidence = np.zeros(len(numbers), _EVIDENCE)
        evidence["letters"] = LETTERS
        evidence["counts"] = SHINGLES, NUMBERS, SENTENCES
        evidence["figures"] = numbers.astype(np.uint64) * GAMMA
        evidence["stored"] = NUMBERS, SENTENCES, TERMS
        evidence["sketch"] = sketches(seeds, changes, edits > 0)
        sites = mix64((numbers % self.sites).astype(np.uint64) + np.uint64(77))
        sentences = spread(seeds, 300, SENTENCES, (1 << 32) // (SENTENCES + 1))
        sentences[:, :SITE_SENTENCES] = spread(sites, 300, SITE_SENTENCES, (1 << 32) // (SENTENCES + 1))
        evidence["sentences"] = sentences
        evidence["terms"] = spread(seeds, 330, TERMS, 5400)
        evidence["numbers"] = spread(seeds, 350, NUMBERS, 3600)
        evidence["tokens"] = evidence["kept_tokens"] = TOKENS_A_WORD * TOKEN_WORDS
        evidence["stream"] = characters(seeds, changes, edits > 0)
        return evidence, keys_of(seeds, changes, edits > 0)


def _page(
    number: int, copy: int, host: int, words: int, body_hash: int, text_hash: int, evidence: bytes, keys: bytes
) -> PreparedPage:
    url = f"https://site{host:06}.example/{2000 + number % 27}/{number:09}{f'-{copy}' if copy else ''}"
    page = Page(
        url=url, canonical_url=url, id=f"{number}-{copy}", title=f"title of a generated page, number {number:09}"
    )
    return PreparedPage(page, Fingerprint(words, ~words & _WORD), body_hash, evidence, None, text_hash, keys)


def words_of(numbers: Integers) -> Words:
    """Return the fingerprints of texts: uint64[n]."""
    words = mixed(numbers, 2)
    shared = words % np.uint64(SHARED_FINGERPRINT) == 0
    words[shared] = mixed(words[shared] % np.uint64(SHARED_FINGERPRINTS), 3)
    return words


def mixed(values: npt.NDArray[Any], salt: int) -> Words:
    """Return random numbers of values: uint64[n]."""
    return mix64(values.astype(np.uint64) * np.uint64(8) + np.uint64(salt) + GAMMA)


def mix64(values: Words) -> Words:
    """Return values, uint64 of any shape, each mixed by the finaliser of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def hashes_at(seeds: Words, places: Integers) -> Words:
    """Return for each of n seeds the random words at places: uint64[n, *places.shape]."""
    return mix64(np.add.outer(seeds, (places + 1).astype(np.uint64) * GAMMA))


def units_at(seeds: Words, places: Integers) -> npt.NDArray[np.float64]:
    """Return the same as numbers of 0 to below 1."""
    return (hashes_at(seeds, places) >> _S11).astype(np.float64) * _UNIT


def sketches(seeds: Words, changes: Words, edited: npt.NDArray[np.bool_]) -> Words:
    """Return the words of sketches, uint64[n, SKETCH_WORDS], 1/32 of the bits changed in an edited copy."""
    at = 8 * np.arange(SKETCH_WORDS)
    one, two, three, four, five = (hashes_at(seeds, at + place) for place in range(5))
    flips = np.bitwise_and.reduce([hashes_at(changes, at + place) for place in range(5)])
    return (one | (two & three & (four | five))) ^ np.where(edited[:, None], flips, np.uint64(0))


def characters(seeds: Words, changes: Words, edited: npt.NDArray[np.bool_]) -> Words:
    """Return streams of characters, uint64[n, TOKEN_WORDS]; of an edited copy, a word of them is another one."""
    words = hashes_at(seeds, 900 + np.arange(TOKEN_WORDS))
    other = hashes_at(changes, np.arange(900, 901))[:, 0]
    words[:, TOKEN_WORDS // 2] = np.where(edited, other, words[:, TOKEN_WORDS // 2])
    all_ones = words & (words >> np.uint64(1)) & (words >> np.uint64(2)) & (words >> np.uint64(3))
    words ^= all_ones & np.uint64(0x1111_1111_1111_1111)  # 15 says that the token is no character
    return words


def spread(seeds: Words, first: int, count: int, step: int) -> Words:
    """Return ascending values, uint64[n, count], one of each step."""
    places = np.arange(count)
    return places.astype(np.uint64) * np.uint64(step) + hashes_at(seeds, first + places) % np.uint64(step)


def keys_of(seeds: Words, changes: Words, edited: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return keys, those of a part ascending: some common ones, the others as far apart as hashes of a text are."""
    at = 400 + 4 * np.arange(PARTS * LEVELS).reshape(PARTS, LEVELS)
    keys = np.minimum((-np.log(1.0 - units_at(seeds, at)) * _OWN_GAP).cumsum(axis=2), 4e9).astype(np.uint64)
    changed = edited[:, None, None] & (units_at(changes, at) < CHANGED_KEYS)
    keys = np.where(changed, hashes_at(changes, at + 1) >> _S32, keys)
    ranks = (units_at(seeds, at + 2) ** 2 * COMMON_KEYS / PARTS).astype(np.uint64)
    common = mix64(ranks + np.arange(1, PARTS + 1, dtype=np.uint64)[:, None] * GAMMA) % np.uint64(LEVELS * _OWN_GAP)
    shares = COMMON * (0.4 + 3.0 * units_at(seeds, np.array([[390]])) ** 4)
    keys = np.where(units_at(seeds, at + 1) < shares, common, keys)
    return np.sort(np.maximum(keys, np.uint64(1)), axis=2).astype(np.uint32)
