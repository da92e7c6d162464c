"""A generated log of any length in which every verdict is known, computed from page numbers alone.

Fingerprints of unrelated pages are codewords of the extended BCH code [64, 36, 12], so no two of them are
within 11 bits, whatever their number; random fingerprints would match by accident some 1,900 times among 10
million. A copy has up to 3 bits flipped in each channel, so it is near its original and at least 9 bits from
everything else. The rule uses distance alone; pages have no evidence. Of each hundred pages ten are copies
of earlier ones, one is an unchanged visit, one an update, and 88 are new.

Invariant: everything about page n is a function of n; nothing is stored.
Source of the code: Lin and Costello, Error Control Coding, table of BCH generators, n = 63, t = 5.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dedup_service.core.log_records import PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.splitmix import splitmix64
from dedup_service.core.verdict import Action, Distance, VerdictKind

TOPIC, PARTITIONS, SPACE_ID = "pages", 4, "benchmark"
GENERATOR = 0o1033500423
MESSAGE_BITS = 36
MAX_FLIPS = 3

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Known:
    """The expected verdict on a page. original: number of the page that the verdict names."""

    kind: VerdictKind
    original: int | None = None
    distance: Distance = field(default_factory=Distance)


def codewords(messages: Words) -> Words:
    """Return the codewords of messages below 2**36: uint64[n], any two at least 12 bits apart."""
    words = np.zeros(len(messages), np.uint64)
    for bit in range(MESSAGE_BITS):
        word = GENERATOR << bit
        word |= (word.bit_count() & 1) << 63
        words ^= np.where(messages >> np.uint64(bit) & np.uint64(1), np.uint64(word), np.uint64(0))
    return words


def known(number: int) -> Known:
    """Return the verdict on page `number`."""
    kind = role(number)
    if kind is VerdictKind.UNIQUE:
        return Known(kind)
    original = _original(number)
    match kind:
        case VerdictKind.DUPLICATE:
            return Known(kind, original, Distance(words=_flips(number, 1), body=_flips(number, 0)))
        case VerdictKind.UNCHANGED:
            return Known(kind, original, Distance(words=0, body=0))
    words, body = (int(a[0] ^ a[1]).bit_count() for a in _channels(np.array([number, original], np.uint64)))
    return Known(kind, original, Distance(words=words, body=body))


def policy(log: str) -> PolicyRecord:
    """Return the first record of the log."""
    rule = replace(rule_for("both"), guards=NO_GUARDS)  # guards would not accept so many copies in a row
    return PolicyRecord(Policy(rule, Action.FLAG, SPACE_ID), initial=True, log=log)


def pages(start: int, stop: int) -> Iterator[PageRecord]:
    """Yield the records of pages from `start` to `stop`, in order."""
    numbers = np.arange(start, stop, dtype=np.uint64)
    kinds = [role(number) for number in range(start, stop)]
    content_of, url_of = numbers.copy(), numbers.copy()
    flips = np.zeros((2, len(numbers)), np.uint64)
    for at, (number, kind) in enumerate(zip(range(start, stop), kinds, strict=True)):
        if kind is VerdictKind.DUPLICATE:
            content_of[at] = _original(number)
            flips[:, at] = _mask(number, 1), _mask(number, 0)
        elif kind is VerdictKind.UNCHANGED:
            content_of[at] = url_of[at] = _original(number)
        elif kind is VerdictKind.UPDATED:
            url_of[at] = _original(number)
    words, body = (values ^ flipped for values, flipped in zip(_channels(content_of), flips, strict=True))
    contents = np.where(flips.any(0), numbers, content_of)
    columns = (numbers, url_of, words, body, contents)
    for number, url, *prints, content in zip(*(column.tolist() for column in columns), strict=True):
        yield _record(number, url, *prints, splitmix64(content))


def record_of_copy(number: int, original: int) -> PageRecord:
    """Return page `number`, beyond the end of the log, an exact copy of page `original` at a new URL."""
    originals = np.array([original], np.uint64)
    words, body = (int(values[0]) for values in _channels(originals))
    return _record(number, number, words, body, splitmix64(original))


def url_of(number: int) -> str:
    """Return the URL under which page `number` was first seen."""
    return f"https://news{number % 997}.example/2026/{number % 12 + 1:02d}/{number:08x}/an-ordinary-story.html"


def _record(number: int, url: int, words: int, body: int, body_hash: int) -> PageRecord:
    address = url_of(url)
    page = Page(url=address, canonical_url=address, id=address, title=f"An ordinary story, number {number}")
    prepared = PreparedPage(page, Fingerprint(words, body), body_hash)
    return PageRecord(Source(TOPIC, number % PARTITIONS, number // PARTITIONS), prepared, SPACE_ID)


def role(number: int) -> VerdictKind:
    """Return the kind of verdict that page `number` gets."""
    if number < 100:
        return VerdictKind.UNIQUE
    if number % 10 == 9:
        return VerdictKind.DUPLICATE
    return {8: VerdictKind.UNCHANGED, 18: VerdictKind.UPDATED}.get(number % 100, VerdictKind.UNIQUE)


def _original(number: int) -> int:
    """Return the page that page `number` refers to.

    An update refers to the page 11 before it, which no other page refers to; a copy or a visit to an earlier
    one of the first seven of a ten.
    """
    if number % 100 == 18:
        return number - 11
    mixed = (number * 0x9E3779B97F4A7C15) % (1 << 64)
    return (mixed >> 20) % number // 10 * 10 + (mixed >> 12) % 7


def _channels(numbers: Words) -> tuple[Words, Words]:
    """Return words and body fingerprints of new pages: uint64[n] each. Odd factors permute the messages."""
    limit = np.uint64((1 << MESSAGE_BITS) - 1)
    words, body = numbers * np.uint64(0x5851F42D4C957F2D) & limit, numbers * np.uint64(0x2545F4914F6CDD1D) & limit
    return codewords(words), codewords(body)


def _flips(number: int, channel: int) -> int:
    return (number // 10 + channel * 3) % (MAX_FLIPS + 1)


def _mask(number: int, channel: int) -> int:
    """Return a mask of `_flips` adjacent bits."""
    low = (1 << _flips(number, channel)) - 1
    turn = (number * 7 + channel * 31) % 64
    return (low << turn | low >> (64 - turn)) & ((1 << 64) - 1)
