"""A record: one delivery as it was read, and how it becomes a page.

Addresses in files need not be Web addresses: they may be `file:` or `urn:` addresses, or anything in a hand-written
list. Such an address identifies its page unchanged, so that two visits of it are still two visits.

Invariants: a record can be pickled, keeps the bytes that were read, and knows its place in the input. Its identity is
the same whenever the same bytes come from the same path in a folder or line of a file, so a repeated run gives every
record the verdict that it had.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, to_page
from dedup_service.core.page import Page
from dedup_service.core.url import PageAddresses, page_addresses

Extract = Callable[[bytes | str, str | None], Extraction]
"""(HTML; declared encoding, Content-Type header or None) → extraction."""

_ANY_ADDRESS = "http://page.invalid/"  # RFC 2606: reserved; replaced before the page is returned


@dataclass(frozen=True, slots=True)
class Mark:
    """Where reading goes on behind a record: its number, and a position that its reader understands.

    The position of lines is a byte of the unpacked file, that of WARC records a byte of the file, of Parquet a row, of
    HTML files a relative path, or how many files there are up to it. last: nothing comes behind it, whatever is there.
    """

    number: int
    position: int | str
    last: bool = False


class Record(Protocol):
    """What every reader yields."""

    @property
    def mark(self) -> Mark:
        """Where reading goes on behind it."""
        ...

    @property
    def number(self) -> int:
        """Position in the input, from 1."""
        ...

    @property
    def place(self) -> str:
        """Where a person finds it ("line 7", "a/b.html")."""
        ...

    @property
    def raw(self) -> bytes:
        """The bytes as they were read."""
        ...

    @property
    def identity(self) -> bytes:
        """Bytes that identify the delivery when it is repeated."""
        ...

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError if the record does not describe one."""
        ...

    def text_page(self) -> Page | None:
        """Return the page if its text is given and the record is small; None if it may take time or memory.

        RecordError as `page`.
        """
        ...

    def unread(self) -> Page:
        """Return the page with its names alone, read in little time and memory; RecordError as `page`.

        For a record over which workers died: the caller reads it without their limits.
        """
        ...


@dataclass(frozen=True, slots=True)
class BrokenInput:
    """Where an input became unreadable: one bad record in place of what is left of it, or of a part of it.

    place: where that is, as a person finds it. raw: the bytes that are there, if they help.
    """

    place: str
    problem: str
    mark: Mark
    raw: bytes = b""

    @property
    def number(self) -> int:
        """Position in the input, from 1."""
        return self.mark.number

    @property
    def identity(self) -> bytes:
        """The place: nothing else is certain."""
        return self.place.encode()

    def page(self, extract: Extract) -> Page:  # noqa: ARG002 - the signature of every record
        """Raise RecordError: there is no page."""
        raise RecordError(self.problem)

    def text_page(self) -> Page | None:
        """Raise RecordError: there is no page."""
        raise RecordError(self.problem)

    def unread(self) -> Page:
        """Raise RecordError: there is no page."""
        raise RecordError(self.problem)


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A record of one of several inputs. source: the name of its input."""

    source: str
    record: Record

    @property
    def mark(self) -> Mark:
        """Where reading of its input goes on behind it."""
        return self.record.mark

    @property
    def number(self) -> int:
        """Position in its input, from 1."""
        return self.record.number

    @property
    def place(self) -> str:
        """Where a person finds it in its input."""
        return self.record.place

    @property
    def raw(self) -> bytes:
        """The bytes as they were read."""
        return self.record.raw

    @property
    def identity(self) -> bytes:
        """That of the record: the same line in another file is the same delivery, as it is further down in one file."""
        return self.record.identity

    def page(self, extract: Extract) -> Page:
        """Return the page of the record."""
        return self.record.page(extract)

    def text_page(self) -> Page | None:
        """Return the page of the record if its text is given and it is small."""
        return self.record.text_page()

    def unread(self) -> Page:
        """Return the page of the record with its names alone."""
        return self.record.unread()


def unnamed(record: Record) -> Record:
    """Return a record without the name of its input."""
    return record.record if isinstance(record, NamedRecord) else record


def addresses_at(url: str, link: str | None = None) -> PageAddresses:
    """Return the addresses of the page at `url`; if `url` is not a Web address, `url` without white space.

    link: the canonical address that the page or its fetcher names (see `core.url.page_addresses`).
    """
    try:
        return page_addresses(url, link)
    except RecordError:
        return PageAddresses(url.strip())


def page_at(extraction: Extraction, url: str, name: str) -> Page:
    """Return the page extracted at `url`, with the id `name`, whatever kind of address `url` is."""
    try:
        return to_page(extraction, url, id=name)
    except RecordError:
        page = to_page(extraction, _ANY_ADDRESS, id=name)
        return replace(page, url=url, canonical_url=url.strip(), claimed_url=None)
