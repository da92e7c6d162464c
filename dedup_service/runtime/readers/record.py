"""What identifies a page whose address is not of the Web.

Files come with `file:` addresses, archives with `urn:`, hand-made lists with anything. Such an address
identifies its page as it stands, so that two visits are still two visits; only an empty one is an error.

One delivery as it was read, and how it becomes a page.

Invariants: a record can be pickled, keeps the bytes it came as, and knows its place in the input.
Its identity is the same whenever the same bytes come from the same place in a folder or line of a file,
which is what lets a repeated run give every record the verdict it had.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import MAX_HTML_BYTES, Extraction, to_page
from dedup_service.core.page import Page
from dedup_service.core.url import believed_canonical

__all__ = ["MAX_PAGE_BYTES", "MAX_RECORD_BYTES", "Extract", "Record", "believed_or_itself", "page_at"]

_ANY_ADDRESS = "http://page.invalid/"  # RFC 2606: never anybody's; replaced before anyone sees it


def believed_or_itself(url: str, link: str | None = None) -> str:
    """Return the canonical URL of the page at `url`, or `url` without white space where it is none of the Web's.

    link: what the page, or whoever fetched it, names as its canonical address (`core.url.believed_canonical`).
    """
    try:
        return believed_canonical(url, link)
    except RecordError:
        return url.strip()


def page_at(extraction: Extraction, url: str, name: str) -> Page:
    """Return the page that `extraction` found at `url`, called `name`, whatever kind of address `url` is."""
    try:
        return to_page(extraction, url, id=name)
    except RecordError:
        page = to_page(extraction, _ANY_ADDRESS, id=name)
        return replace(page, url=url, canonical_url=url.strip())


MAX_RECORD_BYTES = 300 * 2**20
"""A longer record is not held in memory: it is reported as bad. A 50-MB page with every character escaped fits."""

MAX_PAGE_BYTES = MAX_HTML_BYTES
"""A longer text is, like longer HTML, a page that cannot be judged: kept, with the reason."""

Extract = Callable[[bytes | str, str | None], Extraction]
"""(HTML, declared encoding or Content-Type header or None) → extraction."""


class Record(Protocol):
    """What every reader yields.

    number: counts from 1 in its input. place: what a person would look up ("line 7", "a/b.html").
    raw: the bytes as they came.
    """

    @property
    def number(self) -> int:
        """Position in the input, from 1."""
        ...

    @property
    def place(self) -> str:
        """Where a person finds it."""
        ...

    @property
    def raw(self) -> bytes:
        """The record byte for byte."""
        ...

    @property
    def identity(self) -> bytes:
        """Bytes by which the same delivery is known again."""
        ...

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError where the record does not describe one."""
        ...
