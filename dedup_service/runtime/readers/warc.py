"""Read the pages of a WARC file (ISO 28500), plain or with one gzip member for each record.

`response` records with status 200 and `resource` records are read, if their type is HTML, and `conversion` records of
plain text, as WET files have; everything else (requests, images, redirects, revisits) is skipped. The bytes of a record
are those of the file, compressed if they are compressed there, so that a file of kept records is a WARC file again.

How: warcio finds the records and reads their headers. It ends at the first record that is broken, or swallows the
beginning of the next one; the reader then reports the place, looks for the next record and continues there. Bodies are
decoded by `http_body`.
Invariant: no content of a file makes `read_warc` raise, and headers take a bounded amount of memory.
"""

import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecordLoader
from warcio.statusandheaders import StatusAndHeadersParser

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_PAGE_SIZE, MAX_RECORD_BYTES, page_too_large, record_too_large
from dedup_service.runtime.readers.http_body import BodyError, decoded_body
from dedup_service.runtime.readers.record import BrokenInput, Extract, Mark, page_at

CHUNK_BYTES = 2**16
MAX_HEADER_BYTES = 2**20
"""The headers of one record; servers send a few KB, and clients refuse more than some hundred."""

MAX_READ_AGAIN = 4
MIN_READ_AGAIN_BYTES = 64 * 2**20
"""How much of a file may be read for broken records, in times of its size and in bytes. Records may begin inside a
broken one, so reading continues inside it. Gzip members that are made so that all of them reach to the end of the file
would be read in quadratic time: beyond this, an eighth of each broken record is skipped."""

QUOTED_BYTES = 1000
GZIP = b"\x1f\x8b"
RECORD_START = re.compile(rb"\x1f\x8b\x08|WARC/[01]\.[0-9]{1,2}\r?\n")
LONGEST_START = 11
WRONG_LENGTH = "a record whose Content-Length is not its length"
GOES_ON = "a gzip member that goes on behind its record: unpack an archive that was packed as a whole (gzip -d)"
SEPARATOR = b"\r\n\r\n"
TEXT_TYPE = "text/plain"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One HTML response, or the text of one.

    raw: bytes of the record in the file; b"" if they are too many to keep. size_bytes: their number in any case.
    """

    number: int
    offset: int
    size_bytes: int
    raw: bytes

    @property
    def mark(self) -> Mark:
        """The byte behind the record, where line ends may follow."""
        return Mark(self.number, self.offset + self.size_bytes)

    @property
    def place(self) -> str:
        """Where the record starts in the file."""
        return f"record {self.number} at byte {self.offset}"

    @property
    def identity(self) -> bytes:
        """The record itself, including its WARC-Record-ID, without the line ends that the last one may get later."""
        return self.raw.rstrip(b"\r\n")

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError if the record has no URL or cannot be read."""
        if (problem := record_too_large(self.size_bytes)) is not None:
            raise RecordError(problem)
        try:
            record, http = self._opened()
            headers = record.rec_headers if http is None else http
            url = record.rec_headers.get_header("WARC-Target-URI")
            first = iter([record.raw_stream])
            body = decoded_body(
                lambda: next(first, None) or self._opened()[0].raw_stream,
                transfer=headers.get_header("Transfer-Encoding") or "",
                encodings=headers.get_header("Content-Encoding") or "",
                limit_bytes=MAX_PAGE_SIZE + 1,
                cut=bool(record.rec_headers.get_header("WARC-Truncated")),
            )
        except BodyError as error:
            raise RecordError(f"not a readable WARC record: {error}") from None
        except MemoryError:
            raise
        except Exception as error:  # warcio raises whatever it meets: AttributeError, AssertionError, zlib.error
            raise RecordError(f"not a readable WARC record: {error!r}") from None
        if not url:
            raise RecordError("the WARC record has no WARC-Target-URI")
        name = record.rec_headers.get_header("WARC-Record-ID") or url
        if record.rec_type == "conversion":
            text = body.decode("utf-8", "replace")
            problem = page_too_large(text)
            return page_at(Extraction(text="" if problem else text, problem=problem), url, name)
        return page_at(extract(body, headers.get_header("Content-Type") or ""), url, name)

    def text_page(self) -> Page | None:
        """Return None: its body has to be decoded and its text extracted."""
        return None

    def unread(self) -> Page:
        """Return the page that the headers of the record name; its body is not decoded. RecordError as `page`."""
        if (problem := record_too_large(self.size_bytes)) is not None:
            raise RecordError(problem)
        headers = self._record().rec_headers
        url = headers.get_header("WARC-Target-URI")
        if not url:
            raise RecordError("the WARC record has no WARC-Target-URI")
        return page_at(Extraction(), url, headers.get_header("WARC-Record-ID") or url)

    def _record(self) -> Any:
        return next(iter(_records(io.BytesIO(self.raw))))

    def _opened(self) -> tuple[Any, Any]:
        """Return the record, read up to its body, and its HTTP headers or None."""
        record = self._record()
        return record, _http_headers(record)


def read_warc(path: Path, after: Mark | None = None) -> Iterator[WarcRecord | BrokenInput]:
    """Yield the pages of the file at `path`, and a `BrokenInput` for each place that is not a record.

    after: begin behind that record.
    """
    number, again = 0 if after is None else after.number, 0
    with path.open("rb") as stream, path.open("rb") as bytes_again:
        start: int | None = 0 if after is None else _behind_line_ends(bytes_again, int(after.position))
        while start is not None:
            resume: int | None = None
            for found in _intact_records(stream, start, bytes_again):
                number += 1
                if isinstance(found, _Broken):
                    offset = _behind_line_ends(bytes_again, found.offset)
                    again += found.reached - offset
                    size = bytes_again.seek(0, io.SEEK_END)
                    far = again > MAX_READ_AGAIN * size + MIN_READ_AGAIN_BYTES
                    skipped = (found.reached - offset) // 8 if far else 0
                    resume = _next_start(bytes_again, offset + max(1, skipped))
                    yield _broken(number, offset, found.problem, size if resume is None else resume, bytes_again)
                elif found.is_page:
                    piece = _piece(bytes_again, found.offset, found.size_bytes)
                    yield WarcRecord(number, found.offset, found.size_bytes, piece)
            start = resume


def _broken(number: int, offset: int, problem: str, end: int, stream: BinaryIO) -> BrokenInput:
    stream.seek(offset)
    place = f"record {number} at byte {offset}"
    return BrokenInput(place, f"the file cannot be read here: {problem}", Mark(number, end), stream.read(QUOTED_BYTES))


@dataclass(frozen=True, slots=True)
class _Found:
    offset: int
    size_bytes: int
    is_page: bool


@dataclass(frozen=True, slots=True)
class _Broken:
    """reached: how far the file was read for it."""

    offset: int
    problem: str
    reached: int


class _Reader(DecompressingBufferedReader):  # type: ignore[misc] # warcio has no types
    """warcio's reader, with a limit on the lines between two blocks: it keeps all headers of a record."""

    line_bytes = 0

    def readline(self, length: int | None = None) -> bytes:
        """Return a line; ArchiveLoadFailed beyond the limit."""
        line: bytes = super().readline(min(MAX_HEADER_BYTES, length or MAX_HEADER_BYTES))
        self.line_bytes += len(line)
        if self.line_bytes > MAX_HEADER_BYTES:
            raise ArchiveLoadFailed(f"headers of more than {MAX_HEADER_BYTES:,} bytes")
        return line


class _Archive(ArchiveIterator):  # type: ignore[misc] # warcio has no types
    """warcio's iterator, which writes no warnings to stderr."""

    INC_RECORD = ""


def _records(stream: BinaryIO) -> "_Archive":
    """Iterate over the records from the position of `stream`; their HTTP headers are not parsed."""
    archive = _Archive(stream, no_record_parse=True)
    archive.reader = _Reader(stream)
    return archive


def _intact_records(stream: BinaryIO, start: int, bytes_again: BinaryIO) -> Iterator[_Found | _Broken]:
    """Yield what is at `start` and after it, up to the first place that is broken."""
    stream.seek(start)
    archive = _records(stream)
    offset = start
    try:
        for record in archive:
            archive.reader.line_bytes = 0
            if problem := _wrong_length(archive, record, bytes_again):
                yield _Broken(offset, problem, stream.tell())
                return
            is_page = _may_be_page(record)
            archive.read_to_end(record)
            if archive.err_count:
                yield _Broken(offset, WRONG_LENGTH, stream.tell())
                return
            if missing := _missing_bytes(record):
                yield _Broken(offset, _truncated(missing), stream.tell())
                return
            place, size = archive.get_record_offset(), archive.get_record_length()
            if place < offset or size < 0:  # warcio went back: the member has the next record, or began inside of this
                yield _Broken(offset, GOES_ON if archive.next_line else WRONG_LENGTH, stream.tell())
                return
            yield _Found(place, size, is_page)
            offset = place + size
        reached = stream.tell()
        if _has_data(stream, offset):  # warcio ends silently at a damaged gzip member
            yield _Broken(offset, "a truncated record, or data that is not a record", reached)
    except Exception as error:  # warcio raises whatever it meets: AttributeError, UnicodeError, zlib.error
        yield _Broken(offset, " ".join(str(error).split()) or type(error).__name__, stream.tell())


def _wrong_length(archive: Any, record: Any, bytes_again: BinaryIO) -> str | None:
    """Return why the record cannot have the length that it states.

    Looks at the bytes after its end, without the bytes between: a file of records that each state the length of the
    rest of the file would otherwise be read again for each of them. Gzip members end by themselves.
    """
    if record.length is None:
        return WRONG_LENGTH
    if archive.reader.decompressor is not None:
        return None
    end = archive.fh.tell() - archive.reader.rem_length() + record.length
    missing = end - bytes_again.seek(0, io.SEEK_END)
    if missing > 0:
        return _truncated(missing)
    bytes_again.seek(end)
    behind = bytes_again.read(16)
    ends = not behind.strip() or behind.startswith((SEPARATOR, b"\n\n")) or behind.lstrip().startswith(b"WARC/")
    return None if ends else WRONG_LENGTH


def _truncated(missing: int) -> str:
    return f"a truncated record: {missing:,} bytes of its Content-Length are missing"


def _has_data(stream: BinaryIO, offset: int) -> bool:
    """Whether anything but line ends follows `offset`."""
    stream.seek(offset)
    return any(piece.strip() for piece in iter(partial(stream.read, CHUNK_BYTES), b""))


def _behind_line_ends(stream: BinaryIO, offset: int) -> int:
    """Return where the next data begins: warcio's length of a record leaves out the line ends after it."""
    stream.seek(offset)
    while not (piece := stream.read(CHUNK_BYTES)).strip() and piece:
        offset += len(piece)
    return offset + len(piece) - len(piece.lstrip())


def _next_start(stream: BinaryIO, offset: int) -> int | None:
    """Return where the next record starts, at `offset` or after it; None if there is none."""
    while True:
        stream.seek(offset)
        window = stream.read(CHUNK_BYTES)
        for found in RECORD_START.finditer(window):
            place = offset + found.start()
            if found[0][0] != GZIP[0] or _packs_a_record(stream, place):
                return place
        if len(window) < CHUNK_BYTES:
            return None
        offset += len(window) - LONGEST_START


def _packs_a_record(stream: BinaryIO, offset: int) -> bool:
    """Whether a gzip member with a record starts there; the three bytes may also be inside compressed data."""
    stream.seek(offset)
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(stream.read(4096), 5) == b"WARC/"
    except zlib.error:
        return False


_HTTP = StatusAndHeadersParser(ArcWarcRecordLoader.HTTP_TYPES, verify=False)


def _http_headers(record: Any) -> Any:
    """Read and return the HTTP headers of a response, which leaves the stream at its body; None for others."""
    url = record.rec_headers.get_header("WARC-Target-URI")
    if record.rec_type != "response" or not (url is None or url.lower().startswith(("http:", "https:"))):
        return None
    return _HTTP.parse(record.raw_stream)


def _may_be_page(record: Any) -> bool:
    """Whether a record is a page; one whose headers cannot be read may be, and says so as a page."""
    if record.rec_type == "conversion":
        return _media_type(record.rec_headers) == TEXT_TYPE
    try:
        http = _http_headers(record)
    except MemoryError:
        raise
    except Exception:
        return True
    if http is not None:
        return http.get_statuscode() == "200" and _media_type(http) in HTML_TYPES
    return record.rec_type == "resource" and _media_type(record.rec_headers) in HTML_TYPES


def _media_type(headers: Any) -> str:
    return (headers.get_header("Content-Type") or "").partition(";")[0].strip().lower()


def _piece(stream: BinaryIO, offset: int, size: int) -> bytes:
    if size > MAX_RECORD_BYTES:
        return b""
    stream.seek(offset)
    piece = stream.read(size)
    # For an uncompressed record, warcio's length leaves out the two line ends after it.
    return piece if piece.startswith(GZIP) or stream.read(len(SEPARATOR)) != SEPARATOR else piece + SEPARATOR


def _missing_bytes(record: Any) -> int:
    """Bytes that the record announces but does not have; call it after its content was read."""
    while record.raw_stream.read(CHUNK_BYTES):
        pass
    return int(getattr(record.raw_stream, "limit", 0) or 0)
