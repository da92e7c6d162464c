"""Accept corrections: only of pages that are in the log, recorded by their canonical URLs there."""

import time
from dataclasses import dataclass
from typing import Protocol

from dedup_service.core.errors import RecordError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.explain.journal_pages import JournalPages
from dedup_service.runtime.explain.page_source import PageSource, UnknownPageError

MAX_REASON = 200
REASON = "corrected by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRequest:
    """A person's judgement: the page at `url` is a duplicate of the page at `original`, or is not. by: the person.

    url, original: addresses, or sequences in the log.
    """

    url: str | int
    original: str | int
    duplicate: bool
    reason: str = REASON
    by: str | None = None


class Corrections(Protocol):
    """A log that accepts corrections."""

    def add(self, request: CorrectionRequest) -> Correction:
        """Record a correction, in force from then on.

        UnknownPageError if a page is not in the log; RecordError if both are the same page, or the reason is too long.
        """
        ...

    def all(self) -> list[Correction]:
        """Return the audit trail, in the order of the log."""
        ...


class LiveCorrections:
    """Corrections of an open filter."""

    def __init__(self, dedup: NearDuplicateFilter, pages: JournalPages) -> None:
        self._dedup = dedup
        self._pages = pages

    def add(self, request: CorrectionRequest) -> Correction:
        """Record a correction in the filter's journal, in force from the next page on."""
        return self._dedup.correct(record_of(request, self._pages), author=request.by, timestamp=time.time())

    def all(self) -> list[Correction]:
        """Return the audit trail, in the order of the log."""
        return self._pages.corrections()


def record_of(request: CorrectionRequest, pages: PageSource) -> CorrectionRecord:
    """Return the record for the log: both pages by the canonical URL of their latest visit. Raises like `add`."""
    if len(request.reason) > MAX_REASON:
        raise RecordError(f"the reason has {len(request.reason)} characters, at most {MAX_REASON} are allowed")
    url, original = (_canonical(address, pages) for address in (request.url, request.original))
    if url == original:
        raise RecordError(
            f"both addresses are of one page, {url[:500]}: visits of a page are not duplicates of each other"
        )
    return CorrectionRecord(url, original, request.duplicate, request.reason or REASON)


def _canonical(address: str | int, pages: PageSource) -> str:
    page = pages.find(address)
    if page is None:
        raise UnknownPageError(
            f"no page at {str(address)[:500]} is in the log: a correction needs two pages of the log"
        )
    return page.canonical_url
