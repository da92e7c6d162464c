"""The newest pages whose verdict names another page.

They are kept as they came, cut short, and made fit to be shown when somebody asks: cutting bounds the memory, and what
nobody looks at is not worth more work.
"""

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.runtime.facts import Judged
from dedup_service.runtime.feed.cleaning import MOST_TITLE, MOST_URL, MOST_WORDS, cut, host_of, shown

__all__ = ["NAMING", "Newest", "Row"]

NAMING = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})
"""Verdicts that name another page."""


class Row(NamedTuple):
    """A page as it was judged. number: from 1, of all rows ever; at: Unix seconds. Strings are cut, and not yet clean.

    host, of_host: of the two URLs, clean.
    """

    number: int
    at: float
    sequence: int
    verdict: VerdictKind
    id: str
    url: str
    host: str
    title: str
    of: str
    of_url: str
    of_host: str
    of_sequence: int | None
    reason: str
    distance: Distance
    score: float | None

    def shown(self) -> dict[str, Any]:
        """Return it as JSON has it, fit to be shown."""
        return {
            "number": self.number,
            "at": round(self.at, 3),
            "sequence": self.sequence,
            "verdict": self.verdict.value,
            "id": shown(self.id),
            "url": shown(self.url),
            "host": self.host,
            "title": shown(self.title),
            "of": shown(self.of),
            "of_url": shown(self.of_url),
            "of_host": self.of_host,
            "of_sequence": self.of_sequence,
            "reason": shown(self.reason),
            "distance": {"words": self.distance.words, "body": self.distance.body},
            "score": self.score,
        }


class Newest:
    """The last `capacity` rows."""

    def __init__(self, capacity: int) -> None:
        self._rows: deque[Row] = deque(maxlen=capacity)
        self.number = 0

    def add(self, page: Judged, now_s: float) -> Row:
        """Add a page whose verdict names another, and return its row."""
        verdict = page.verdict
        url, of_url = cut(verdict.url, MOST_URL), cut(verdict.duplicate_of_url or "", MOST_URL)
        self.number += 1
        row = Row(
            self.number,
            now_s,
            verdict.sequence,
            verdict.kind,
            cut(verdict.id, MOST_WORDS),
            url,
            _host(url),
            cut(page.title, MOST_TITLE),
            cut(verdict.duplicate_of or "", MOST_WORDS),
            of_url,
            _host(of_url),
            page.of,
            cut(verdict.reason or "", MOST_WORDS),
            verdict.distance,
            verdict.score,
        )
        self._rows.append(row)
        return row

    def rows(self) -> list[Row]:
        """Return all rows, newest first."""
        return list(reversed(self._rows))

    def since(self, number: int) -> Iterator[Row]:
        """Yield the rows above `number`, newest first."""
        for row in reversed(self._rows):
            if row.number <= number:
                return
            yield row


def _host(url: str) -> str:
    """Return the host of a URL, fit to be shown; few hosts make most pages, so those of late are remembered."""
    end = url.find("/", url.find("://") + 3)
    return _host_in(url if end < 0 else url[:end])


@lru_cache(maxsize=4096)
def _host_in(beginning: str) -> str:
    return cut(shown(host_of(beginning)), MOST_WORDS)
