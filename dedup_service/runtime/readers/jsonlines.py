"""JSON lines of pages: `id`, `url`, `canonical_url`, `title`, `text` or `html`, and metadata.

A line is typed strictly: `url` must be there and every known key must have its type; unknown keys are
left alone. `id` is the URL where it is missing. `canonical_url` is believed where a page's own link would be.
Blank lines are no records.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.core.page import Page
from dedup_service.runtime.readers.address import believed_or_itself, page_at
from dedup_service.runtime.readers.lines import Wait, read_lines
from dedup_service.runtime.readers.record import MAX_PAGE_BYTES, MAX_RECORD_BYTES, Extract

__all__ = ["BYTE_ORDER_MARK", "JsonLine", "PageLine", "page_in_json", "read_json_lines"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class PageLine(msgspec.Struct, frozen=True):
    """The keys of a line that mean something here, as they may come."""

    url: str
    id: str | None = None
    title: str | None = None
    text: str | None = None
    html: str | None = None
    lang: str | None = None
    keywords: list[str] | None = None
    tags: list[str] | None = None
    references: list[str] | None = None
    date: str | None = None
    site_name: str | None = None
    canonical_url: str | None = None


_decoder = msgspec.json.Decoder(PageLine)


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One line; `cut` where it exceeded the limit and only its beginning is here."""

    number: int
    raw: bytes
    cut: bool = False

    @property
    def place(self) -> str:
        """The line, as editors count them."""
        return f"line {self.number}"

    @property
    def identity(self) -> bytes:
        """The line itself."""
        return self.raw

    def page(self, extract: Extract) -> Page:
        """Return the page of this line; RecordError where it does not parse, lacks `url` or has a wrong type."""
        if self.cut:
            raise RecordError(f"the line is longer than {MAX_RECORD_BYTES:,} bytes")
        return page_in_json(self.raw.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else self.raw, extract)


def page_in_json(raw: bytes, extract: Extract) -> Page:
    """Return the page that the JSON object `raw` describes; RecordError where it describes none."""
    line = _decode(raw)
    if line.text is not None and len(line.text) > MAX_PAGE_BYTES:
        problem = f"page too large: {len(line.text)} characters, limit {MAX_PAGE_BYTES}"
        return _plain(line, text="", problem=problem)
    if line.text is not None:
        return _plain(line, text=line.text)
    if line.html is None:
        return _plain(line, text="", problem="neither text nor html given")
    return _with_stated(page_at(extract(line.html, None), line.url, line.id or line.url), line)


def read_json_lines(stream: BinaryIO, wait: Wait | None = None) -> Iterator[JsonLine | None]:
    """Yield the records of `stream`, and None whenever the next line has not arrived yet."""
    for line in read_lines(stream, MAX_RECORD_BYTES, wait):
        if line is None:
            yield None
        elif line.cut or line.raw.strip():
            yield JsonLine(line.number, line.raw, line.cut)


def _decode(raw: bytes) -> PageLine:
    try:
        line = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not a page in JSON: {error}") from None
    if not line.url.strip():
        raise RecordError("not a page in JSON: `url` is empty")
    return line


def _plain(line: PageLine, *, text: str, problem: str | None = None) -> Page:
    return Page(
        url=line.url,
        canonical_url=believed_or_itself(line.url, line.canonical_url),
        id=line.id or line.url,
        title=line.title or "",
        text=text,
        lang=line.lang,
        keywords=tuple(line.keywords or ()),
        tags=tuple(line.tags or ()),
        references=tuple(line.references or ()),
        site_name=line.site_name,
        date=line.date,
        problem=problem,
    )


def _with_stated(page: Page, line: PageLine) -> Page:
    """What the line states beside the HTML goes before what extraction found in it."""
    named = line.canonical_url
    return replace(
        page,
        canonical_url=believed_or_itself(line.url, named) if named else page.canonical_url,
        title=line.title or page.title,
        lang=line.lang or page.lang,
        date=line.date or page.date,
        site_name=line.site_name or page.site_name,
        keywords=tuple(line.keywords or page.keywords),
        tags=tuple(line.tags or page.tags),
        references=tuple(line.references or page.references),
    )
