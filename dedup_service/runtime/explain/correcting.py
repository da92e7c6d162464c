"""Taking in what a person says of two pages: only of pages that the log has, by their canonical URLs there."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dedup_service.core.errors import RecordError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.explain.journal_pages import JournalPages
from dedup_service.runtime.explain.page_source import PageSource, UnknownPageError

__all__ = ["MAX_REASON", "CorrectionRequest", "Corrections", "LiveCorrections", "record_of"]

MAX_REASON = 200
REASON = "corrected by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRequest:
    """What a person says: the page at `url` is a duplicate of the one at `of`, or is none of it. by: who says it.

    url, of: addresses, or sequences, which name the page that stands there in the log.
    """

    url: str | int
    original: str | int
    duplicate: bool
    reason: str = REASON
    by: str | None = None


class Corrections(Protocol):
    """A log that takes corrections."""

    def add(self, said: CorrectionRequest) -> Correction:
        """Record a correction, in force from then on.

        UnknownPageError where a page is not in the log; RecordError where both are one, or the reason is too long.
        """
        ...

    def all(self) -> list[Correction]:
        """Return the audit trail, in the order of the log."""
        ...


class LiveCorrections:
    """Corrections of a filter that runs. clock: Unix seconds."""

    def __init__(self, dedup: NearDuplicateFilter, pages: JournalPages, clock: Callable[[], float] = time.time) -> None:
        self._dedup = dedup
        self._pages = pages
        self._clock = clock

    def add(self, said: CorrectionRequest) -> Correction:
        """Record a correction in the filter's journal, in force from the next page on."""
        return self._dedup.correct(record_of(said, self._pages), by=said.by, at=self._clock())

    def all(self) -> list[Correction]:
        """Return the audit trail, in the order of the log."""
        return self._pages.corrections()


def record_of(said: CorrectionRequest, pages: PageSource) -> CorrectionRecord:
    """Return what stands in the log, both pages by the canonical URLs of their latest visits; raises as `add`."""
    if len(said.reason) > MAX_REASON:
        raise RecordError(f"the reason has {len(said.reason)} characters, at most {MAX_REASON} are kept")
    url, original = (_canonical(address, pages) for address in (said.url, said.original))
    if url == original:
        raise RecordError(f"both addresses are of one page, {url[:500]}: its visits are no duplicates of each other")
    return CorrectionRecord(url, original, said.duplicate, said.reason or REASON)


def _canonical(address: str | int, pages: PageSource) -> str:
    page = pages.find(address)
    if page is None:
        raise UnknownPageError(
            f"no page at {str(address)[:500]} is in the log: a correction names two pages that it has"
        )
    return page.canonical_url
