"""Expected guard decisions, from all earlier decisions: lists and sets, counted from scratch for each page.

Shares only the bounds with the code under test. The estimated number of distinct values is part of the
specified behaviour, so it is computed here as well: from the whole set, in fractions. Not modelled: eviction
of clusters when there are more than 131,072 of them; no test has that many.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import xxhash

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import Guards
from tests.oracle.kept_pages import KeptPage

WINDOW, THOUSANDS = 1000, 20


@dataclass(frozen=True, slots=True)
class _Copy:
    """A page that matched a kept page. title, body_hash: None if they are those of the kept page."""

    url: str
    host: str
    title: tuple[int, ...] | None
    body_hash: int | None


class GuardOracle:
    """All decisions since the policy has guards."""

    def __init__(self) -> None:
        self._marks: list[bool] = []
        self._thousands: list[int] = []
        self._copies: defaultdict[int, list[_Copy]] = defaultdict(list)

    def unmatched(self) -> None:
        """Record a page that matched nothing."""
        self._mark(False)

    def removed(self, sequence: int) -> None:
        """Record that a kept page was removed."""
        self._copies.pop(sequence, None)

    def match(self, kept: KeptPage, prepared: PreparedPage, guards: Guards) -> str | None:
        """Record a page that matched `kept`; return why the match is not accepted, or None."""
        url, title = prepared.page.canonical_url, Evidence(prepared.evidence).terms
        retitled = bool(title) and not _alike(set(Evidence(kept.prepared.evidence).terms), set(title))
        host = url.split("://", 1)[1].split("/", 1)[0] if "://" in url else ""
        rewritten = prepared.body_hash != kept.prepared.body_hash
        copies = self._copies[kept.sequence]
        copies.append(_Copy(url, host, title if retitled else None, prepared.body_hash if rewritten else None))
        pages = estimated_distinct({_digest(copy.url.encode()) for copy in copies})
        hosts = estimated_distinct({_digest(copy.host.encode()) for copy in copies})
        titles = estimated_distinct({_digest(_bytes(copy.title)) for copy in copies if copy.title is not None})
        texts = estimated_distinct({copy.body_hash for copy in copies if copy.body_hash is not None})
        another_title, another_text = retitled and titles > 1, rewritten and texts > 16 and pages > 16
        suspicious = another_title or another_text or hosts > 125 or pages > 1250
        self._mark(suspicious)
        name = kept.prepared.page.id
        if 0 < guards.max_titles < titles:
            return f"guard titles: pages under about {titles} other titles match {name}, more than {guards.max_titles}"
        if 0 < guards.max_hosts < hosts:
            return f"guard hosts: pages of about {hosts} hosts match {name}, more than {guards.max_hosts}"
        if 0 < guards.max_pages < pages:
            return f"guard pages: about {pages} pages match {name}, more than {guards.max_pages}"
        usual, recent = self._usual(), sum(self._marks[-WINDOW:])
        surged = usual is not None and recent * 100 * 65536 > usual * 100 + guards.surge_percent * WINDOW * 65536
        if suspicious and guards.surge_percent and usual is not None and surged:
            shares = f"{recent // 10}% of the last 1000 pages are suspicious copies, usually {usual // 655360}%"
            return f"guard surge: {shares}; this one of {name}"
        return None

    def _mark(self, suspicious: bool) -> None:
        self._marks.append(suspicious)
        if len(self._marks) % WINDOW == 0:
            self._thousands.append(sum(self._marks[-WINDOW:]) * 65536)

    def _usual(self) -> int | None:
        """Return the usual number of suspicious pages in a thousand, in 1/65536; None before the first."""
        usual = learned = 0
        for marks in self._thousands[:-1]:  # the last complete thousand overlaps the last 1,000 pages
            if not learned or marks <= usual + 250 * 65536:
                learned = min(learned + 1, THOUSANDS)
                usual += (marks - usual) // learned
        return usual if learned else None


def estimated_distinct(hashes: set[int]) -> int:
    """Return HyperLogLog's estimate of the size of a set of 64-bit hashes: 32 registers of at most 15."""
    registers = [0] * 32
    for value in hashes:
        bits = f"{value:064b}"
        zeros = len(bits[:59]) - len(bits[:59].rstrip("0"))
        at = int(bits[59:], 2)
        registers[at] = max(registers[at], min(zeros + 1, 15))
    raw = Fraction(697 * 32 * 32, 1000) / sum(Fraction(1, 2**register) for register in registers)
    empty = registers.count(0)
    if math.floor(raw) > 80 or not empty:
        return math.floor(raw)
    return round(32 * math.log(32 / empty))


def _alike(one: set[int], other: set[int]) -> bool:
    shorter = min(len(one), len(other))
    return shorter > 0 and len(one & other) / shorter >= 0.7 - 1e-9


def _digest(value: bytes) -> int:
    return xxhash.xxh3_64_intdigest(value)


def _bytes(terms: tuple[int, ...]) -> bytes:
    return b"".join(term.to_bytes(2, "little") for term in terms)
