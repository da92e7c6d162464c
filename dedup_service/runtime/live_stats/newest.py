"""The newest pages: those whose verdict names another page, and, apart from them, unique and undecided ones.

Their strings are truncated when they are added, which bounds the memory, and made safe to display when they are asked
for, since most rows are never displayed.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.runtime.events import PageDecided
from dedup_service.runtime.live_stats.display_safe import MAX_TITLE, MAX_URL, MAX_WORDS, cut, host_of, shown

NAMING = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})
"""Verdicts that name another page."""


class DuplicateRow(NamedTuple):
    """A decided page. number: counts from 1 over all rows; at: Unix seconds. Strings are truncated, not yet cleaned.

    host, original_host: hosts of the two URLs, cleaned. base: which has the original, "" for none.
    """

    number: int
    at: float
    sequence: int
    verdict: VerdictKind
    id: str
    url: str
    host: str
    title: str
    original: str
    original_url: str
    original_host: str
    original_sequence: int | None
    reason: str
    distance: Distance
    score: float | None
    base: str = ""

    def has(self, text: str) -> bool:
        """Whether an address, host, title or id of the page, or an address or host of its original, contains `text`."""
        own = (self.url, self.host, self.title, self.id, self.original_url, self.original_host)
        return any(text in name.casefold() for name in own)

    def shown(self) -> dict[str, Any]:
        """Return the row as values for JSON, safe to display."""
        base = {"of_base": shown(self.base)} if self.base else {}
        return base | {
            "number": self.number,
            "at": round(self.at, 3),
            "sequence": self.sequence,
            "verdict": self.verdict.value,
            "id": shown(self.id),
            "url": shown(self.url),
            "host": self.host,
            "title": shown(self.title),
            "of": shown(self.original),
            "of_url": shown(self.original_url),
            "of_host": self.original_host,
            "of_sequence": self.original_sequence,
            "reason": shown(self.reason),
            "distance": {"words": self.distance.words, "body": self.distance.body},
            "score": self.score,
        }


class Newest:
    """The last `capacity` rows of pages that name another, and as many of each other verdict."""

    def __init__(self, capacity: int) -> None:
        self._rows: deque[DuplicateRow] = deque(maxlen=capacity)
        self._others: dict[VerdictKind, deque[tuple[int, float, PageDecided]]] = {
            kind: deque(maxlen=capacity) for kind in VerdictKind if kind not in NAMING
        }
        self.number = 0

    def add(self, page: PageDecided, now_s: float) -> DuplicateRow:
        """Add a page whose verdict names another page, and return its row."""
        self.number += 1
        row = _row(self.number, now_s, page)
        self._rows.append(row)
        return row

    def add_other(self, page: PageDecided, now_s: float) -> None:
        """Add a page whose verdict names no other; its row is made when somebody asks for it."""
        self.number += 1
        self._others[page.verdict.kind].append((self.number, now_s, _short(page)))

    def rows(self, verdict: VerdictKind | None = None) -> list[DuplicateRow]:
        """Return the rows of a verdict, newest first; of None, all that name another page."""
        if verdict in self._others:
            return [_row(*other) for other in reversed(self._others[verdict])]
        return [row for row in reversed(self._rows) if verdict in {None, row.verdict}]

    def since(self, number: int) -> Iterator[DuplicateRow]:
        """Yield the rows above `number` that name another page, newest first."""
        for row in reversed(self._rows):
            if row.number <= number:
                return
            yield row


def _row(number: int, now_s: float, page: PageDecided) -> DuplicateRow:
    verdict = page.verdict
    url, original_url = cut(verdict.url, MAX_URL), cut(verdict.duplicate_of_url or "", MAX_URL)
    return DuplicateRow(
        number,
        now_s,
        verdict.sequence,
        verdict.kind,
        cut(verdict.id, MAX_WORDS),
        url,
        _host(url),
        cut(page.title, MAX_TITLE),
        cut(verdict.duplicate_of or "", MAX_WORDS),
        original_url,
        _host(original_url),
        page.original,
        cut(verdict.reason or "", MAX_WORDS),
        verdict.distance,
        verdict.score,
        cut(verdict.duplicate_of_base or "", MAX_WORDS),
    )


def _short(page: PageDecided) -> PageDecided:
    """Return a page whose strings are bounded."""
    verdict = page.verdict
    if len(page.title) + len(verdict.url) + len(verdict.id) <= MAX_URL:
        return page
    verdict = replace(verdict, url=cut(verdict.url, MAX_URL), id=cut(verdict.id, MAX_WORDS))
    return PageDecided(verdict, cut(page.title, MAX_TITLE))


def _host(url: str) -> str:
    """Return the host of a URL, safe to display. Few hosts have most of the pages, so recent ones are cached."""
    end = url.find("/", url.find("://") + 3)
    return _host_in(url if end < 0 else url[:end])


@lru_cache(maxsize=4096)
def _host_in(beginning: str) -> str:
    return cut(shown(host_of(beginning)), MAX_WORDS)
