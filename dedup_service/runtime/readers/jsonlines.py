"""Read JSON lines of pages: `id`, `url`, `canonical_url`, `title`, `text` or `html`, and metadata.

`read_lines` splits a stream into lines in bounded memory and yields None when the next line has not arrived yet, so
that a caller can process an incomplete batch before it blocks. A line over the limit is read to its end but not kept.

A line is typed strictly: `url` is required, and every known key must have its type; unknown keys are ignored. `id`
defaults to the URL; a number is taken as text. `canonical_url` is a claim, under the conditions for a page's own link.
Blank lines are ignored.
Keys may have other names (`columns`).
"""

import gzip
import io
import os
import select
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, TypeVar

import msgspec
import zstandard

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_RECORD_BYTES, line_too_long, page_too_large
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.runtime.readers.columns import Columns, NamesJson, PageJson
from dedup_service.runtime.readers.looks import HEAD_BYTES
from dedup_service.runtime.readers.packed import Chunks, is_packed, unpacked
from dedup_service.runtime.readers.pipe import ReadingStopped, Wait, until_readable
from dedup_service.runtime.readers.record import BrokenInput, Extract, Mark, addresses_at, page_at

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK_BYTES = 2**20

Check = Callable[[bytes], None]

DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError)
"""What packed bytes that are damaged or end too early raise."""

SMALL_BYTES = 1 << 16
"""Of a line that is read without the limits of a worker: decoding it takes less than a millisecond and a megabyte."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line with its line end. cut: the line is longer than the limit, and `raw` is only its beginning.

    end: the byte of the stream behind it.
    """

    number: int
    raw: bytes
    cut: bool = False
    end: int = field(default=0, compare=False)


def read_lines(
    stream: BinaryIO,
    limit_bytes: int,
    wait: Wait | None = None,
    after: tuple[int, int] = (0, 0),
    check: Check | None = None,
) -> Iterator[InputLine | None]:
    """Yield the lines of `stream`, packed or not; yield None whenever the next read would block.

    wait: called before a read that would block; False raises ReadingStopped, so that no half line counts as one.
    after: number and end of the line before the first one, in the unpacked bytes.
    check: gets the first bytes of the stream, once there is a line, and raises if they are of another format.
    """
    (number, end_before), held, size = after, list[bytes](), 0
    chunks = _behind(stream, wait, end_before)
    for chunk in chunks if check is None or end_before else _checked(chunks, check):
        if chunk is None:
            yield None
            continue
        start = 0
        while (end := chunk.find(b"\n", start) + 1) > 0:
            number += 1
            held.append(chunk[start:end])
            size += end - start
            end_before += size
            yield _line(number, held, size, limit_bytes, end_before)
            held, size, start = [], 0, end
        if start < len(chunk):
            size += len(chunk) - start
            if size - (len(chunk) - start) <= limit_bytes:
                held.append(chunk[start:])
    if size:
        yield _line(number + 1, held, size, limit_bytes, end_before + size)


def _line(number: int, held: list[bytes], size: int, limit_bytes: int, end: int) -> InputLine:
    if size <= limit_bytes:
        return InputLine(number, b"".join(held), end=end)
    return InputLine(number, held[0][:1000], cut=True, end=end)


def _checked(chunks: Chunks, check: Check) -> Chunks:
    head: bytes | None = b""
    for chunk in chunks:
        if head is not None and chunk is not None:
            head += chunk[: HEAD_BYTES - len(head)]
            if b"\n" in head or len(head) >= HEAD_BYTES:
                check(head)
                head = None
        yield chunk
    if head:
        check(head)


def _behind(stream: BinaryIO, wait: Wait | None, count: int) -> Chunks:
    """Yield what is behind the first `count` unpacked bytes of a stream that is at its beginning."""
    if count and stream.seekable():
        packed = is_packed(stream.read(4))
        stream.seek(0 if packed else count)
        count = count if packed else 0
    for chunk in unpacked(_chunks(stream, wait)):
        if chunk is None or len(chunk) > count:
            yield chunk and chunk[count:]
        count -= 0 if chunk is None else min(count, len(chunk))


def _chunks(stream: BinaryIO, wait: Wait | None) -> Chunks:
    descriptor = _descriptor(stream)
    if descriptor is None:
        read = getattr(stream, "read1", stream.read)  # of a damaged file, what comes before the damage
        while chunk := read(CHUNK_BYTES):
            yield chunk
        return
    while True:
        if not select.select([descriptor], [], [], 0)[0]:
            yield None
            if not (wait or until_readable)(descriptor):
                raise ReadingStopped
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:  # another reader of this pipe was faster
            continue
        if not chunk:
            return
        yield chunk


def _descriptor(stream: BinaryIO) -> int | None:
    """The descriptor to poll; None if the stream is not a pipe, socket or file (a decompressor, bytes in memory)."""
    if not isinstance(stream, io.BufferedReader | io.FileIO):
        return None
    try:
        return stream.fileno()
    except OSError:
        return None


_Line = TypeVar("_Line", PageJson, NamesJson)
_decoder = msgspec.json.Decoder(PageJson)
_names_decoder = msgspec.json.Decoder(NamesJson)
_object_decoder = msgspec.json.Decoder(dict[str, Any])


class JsonRecord:
    """The pages of a record that is a JSON object."""

    __slots__ = ()

    def _json(self) -> bytes:
        """Return the object; RecordError if the record cannot be read."""
        raise NotImplementedError

    def _names(self) -> Columns | None:
        """Return other names of its keys, if any."""
        return None

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError if it does not parse, lacks `url`, has a wrong type or is too large."""
        return page_of(_decode(self._json(), _decoder, self._names()), extract)

    def text_page(self) -> Page | None:
        """Return the page if the object is short and has a text or nothing, None for others; RecordError as `page`."""
        raw = self._json()
        if len(raw) > SMALL_BYTES:
            return None
        line = _decode(raw, _decoder, self._names())
        return None if line.text is None and line.html is not None else page_of(line, _no_html)

    def unread(self) -> Page:
        """Return the page with `url` and `id` alone, without memory for all else; RecordError as `page`."""
        line = _decode(self._json(), _names_decoder, self._names())
        return page_at(Extraction(), line.url, line.name)


@dataclass(frozen=True, slots=True)
class JsonLine(JsonRecord):
    """One line. cut: the line is longer than the limit, and `raw` is only its beginning.

    end: the byte of the unpacked file behind it. columns: other names of its keys, if any.
    """

    number: int
    raw: bytes
    cut: bool = False
    end: int = field(default=0, compare=False)
    columns: Columns | None = None

    @property
    def mark(self) -> Mark:
        """The next line."""
        return Mark(self.number, self.end)

    @property
    def place(self) -> str:
        """The line number, as editors count."""
        return f"line {self.number}"

    @property
    def identity(self) -> bytes:
        """The line without its end, which the last one may get later, and the names of values that were looked for."""
        line = self._line().rstrip(b"\r\n")
        return line if self.columns is None else line + repr(self.columns.names).encode()

    def values(self) -> dict[str, Any]:
        """Return all values of this line, which is one of a page."""
        return _object_decoder.decode(self._line())

    def _json(self) -> bytes:
        if self.cut:
            raise RecordError(line_too_long(MAX_RECORD_BYTES))
        return self._line()

    def _names(self) -> Columns | None:
        return self.columns

    def _line(self) -> bytes:
        return self.raw.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else self.raw


def line_of(values: Mapping[str, object], place: str) -> PageJson:
    """Return the line of JSON that has these values; RecordError names the place and the field that is wrong.

    >>> line_of({"url": 7}, "row 3")
    Traceback (most recent call last):
    dedup_service.core.errors.RecordError: row 3: `url`: expected `str`, got `int`
    """
    try:
        line = msgspec.convert(values, PageJson)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        missing = what.removeprefix("Object missing required field ")
        problem = f"`{path}: {what[0].lower()}{what[1:]}" if path else f"{missing} is missing"
        raise RecordError(f"{place}: {problem}") from None
    if not line.url.strip():
        raise RecordError(f"{place}: `url` is empty")
    return line


def page_of(line: PageJson, extract: Extract) -> Page:
    """Return the page of a line; one without text gives the reason."""
    if line.text is not None:
        problem = page_too_large(line.text)
        return _plain(line, text=line.text if problem is None else "", problem=problem)
    if line.html is None:
        return _plain(line, text="", problem="neither text nor html given")
    return _with_metadata(page_at(extract(line.html, None), line.url, line.name), line)


def _no_html(_html: bytes | str, _declared_encoding: str | None) -> Extraction:
    raise AssertionError("a line with a text is not extracted")


def json_of(page: Page) -> bytes:
    """Return a page as the JSON object of a line, whose page has its addresses, its text and its metadata.

    Lone surrogates become `?`.

    >>> json_of(Page(url="http://a.test/", canonical_url="http://a.test/", id="7", text="Text."))
    b'{"url":"http://a.test/","id":"7","text":"Text.","canonical_url":"http://a.test/"}'
    """
    return msgspec.json.encode(values_of(page))


def values_of(page: Page) -> dict[str, str | int | list[str]]:
    """Return a page under the keys of a line, without those that it does not have; see `json_of`."""
    names = [name for name in PageJson.__struct_fields__ if name not in {"html", "canonical_url"}]
    found = {name: getattr(page, name) for name in names} | {"canonical_url": page.claimed_url or page.canonical_url}
    has = {name: value for name, value in found.items() if value not in {None, "", ()} or name in {"url", "text"}}
    return {name: _written(value) for name, value in has.items()}


def _written(value: str | int | tuple[str, ...]) -> str | int | list[str]:
    if isinstance(value, str):
        return without_surrogates(value)
    return value if isinstance(value, int) else [without_surrogates(one) for one in value]


def read_json_lines(
    stream: BinaryIO,
    wait: Wait | None = None,
    *,
    columns: Columns | None = None,
    after: Mark | None = None,
    check: Check | None = None,
) -> Iterator[JsonLine | BrokenInput | None]:
    """Yield the records of `stream`; yield None when the next line has not arrived yet.

    A damaged or truncated packed file ends with a `BrokenInput`, and a wait that was ended with one more None: a caller
    who looks then whether to stop begins no other input. after: begin behind that record. check: see `read_lines`.
    """
    number, end = (0, 0) if after is None else (after.number, int(after.position))
    try:
        for line in read_lines(stream, MAX_RECORD_BYTES, wait, (number, end), check):
            if line is None:
                yield None
                continue
            number, end = line.number, line.end
            if line.cut or line.raw.strip():
                yield JsonLine(line.number, line.raw, line.cut, line.end, columns)
    except ReadingStopped:
        yield None
    except DAMAGE as error:
        yield broken_at(number + 1, error, Mark(number + 1, end, last=True))


def broken_at(line: int, error: Exception, mark: Mark) -> BrokenInput:
    """Return what is there in place of the rest of a damaged file."""
    return BrokenInput(f"line {line}", f"the file cannot be read from here on: {error}", mark)


def _decode(raw: bytes, decoder: msgspec.json.Decoder[_Line], columns: Columns | None = None) -> _Line:
    try:
        if columns is None:
            line = decoder.decode(raw)
        else:
            line = msgspec.convert(columns.pick(_object_decoder.decode(raw)), decoder.type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not a page in JSON: {error}") from None
    if not line.url.strip():
        raise RecordError("not a page in JSON: `url` is empty")
    return line


def _plain(line: PageJson, *, text: str, problem: str | None = None) -> Page:
    addresses = addresses_at(line.url, line.canonical_url)
    return Page(
        url=line.url,
        canonical_url=addresses.canonical_url,
        claimed_url=addresses.claimed_url,
        id=line.name,
        title=line.title or "",
        text=text,
        lang=line.lang,
        keywords=tuple(line.keywords or ()),
        tags=tuple(line.tags or ()),
        references=tuple(line.references or ()),
        site_name=line.site_name,
        date=line.date,
        text_percent=_percent(line),
        problem=problem,
    )


def _percent(line: PageJson) -> int | None:
    """Return the share of main text that a line states, None for one that cannot be."""
    stated = line.text_percent
    return round(stated) if stated is not None and 0 <= stated <= 100 else None


def _with_metadata(page: Page, line: PageJson) -> Page:
    """Metadata of the line takes precedence over what was extracted from its HTML."""
    link = line.canonical_url
    return replace(
        page,
        claimed_url=addresses_at(line.url, link).claimed_url if link else page.claimed_url,
        title=line.title or page.title,
        lang=line.lang or page.lang,
        date=line.date or page.date,
        site_name=line.site_name or page.site_name,
        text_percent=page.text_percent if (stated := _percent(line)) is None else stated,
        keywords=tuple(line.keywords or page.keywords),
        tags=tuple(line.tags or page.tags),
        references=tuple(line.references or page.references),
    )
