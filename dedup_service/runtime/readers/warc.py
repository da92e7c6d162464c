"""Read the HTML responses of a WARC file (ISO 28500), plain or with one gzip member for each record.

`response` records with status 200 and `resource` records are read, if their type is HTML; everything else (requests,
images, redirects, revisits) is skipped. The bytes of a record are those of the file, compressed if they are compressed
there, so that a file of kept records is a WARC file again.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from dedup_service.core.errors import RecordError
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_PAGE_SIZE, MAX_RECORD_BYTES, record_too_large
from dedup_service.runtime.readers.record import Extract, page_at

__all__ = ["BrokenWarc", "WarcRecord", "read_warc"]

CHUNK_BYTES = 2**16
GZIP = b"\x1f\x8b"
SEPARATOR = b"\r\n\r\n"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One HTML response.

    raw: bytes of the record in the file; b"" if they are too many to keep. size_bytes: their number in any case.
    """

    number: int
    offset: int
    size_bytes: int
    raw: bytes

    @property
    def place(self) -> str:
        """Where the record starts in the file."""
        return f"record {self.number} at byte {self.offset}"

    @property
    def identity(self) -> bytes:
        """The record itself, including its WARC-Record-ID."""
        return self.raw

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError if the record has no URL or cannot be read."""
        if (problem := record_too_large(self.size_bytes)) is not None:
            raise RecordError(problem)
        try:
            record = next(iter(ArchiveIterator(io.BytesIO(self.raw))))
            url = record.rec_headers.get_header("WARC-Target-URI")
            body = record.content_stream().read(MAX_PAGE_SIZE + 1)
            missing = _missing_bytes(record)
        except (ArchiveLoadFailed, StopIteration, OSError, EOFError, ValueError) as error:
            raise RecordError(f"not a readable WARC record: {error!r}") from None
        if missing and len(body) <= MAX_PAGE_SIZE:
            raise RecordError(f"the WARC record is truncated: {missing:,} bytes of its Content-Length are missing")
        if not url:
            raise RecordError("the WARC record has no WARC-Target-URI")
        name = record.rec_headers.get_header("WARC-Record-ID") or url
        return page_at(extract(body, _content_type(record)), url, name)


@dataclass(frozen=True, slots=True)
class BrokenWarc:
    """The place where a file became unreadable: one bad record that ends the input."""

    number: int
    offset: int
    problem: str
    raw: bytes = b""

    @property
    def place(self) -> str:
        """Where reading ended."""
        return f"record {self.number} at byte {self.offset}"

    @property
    def identity(self) -> bytes:
        """The place: nothing else is known."""
        return self.place.encode()

    def page(self, extract: Extract) -> Page:  # noqa: ARG002 - the signature of every record
        """Raise RecordError: there is no page."""
        raise RecordError(f"the file cannot be read from here on: {self.problem}")


def read_warc(path: Path) -> Iterator[WarcRecord | BrokenWarc]:
    """Yield the HTML responses of the file at `path`; a damaged file ends with a `BrokenWarc`."""
    number = offset = 0
    with path.open("rb") as stream, path.open("rb") as bytes_again:
        archive = ArchiveIterator(stream)
        try:
            for record in archive:
                number += 1
                is_html = _is_html(record)
                archive.read_to_end(record)
                offset, size = archive.get_record_offset(), archive.get_record_length()
                if is_html:
                    yield WarcRecord(number, offset, size, _piece(bytes_again, offset, size))
                offset += size
            bytes_again.seek(offset)
            if bytes_again.read(CHUNK_BYTES).strip():  # warcio ends silently at a truncated gzip member
                yield BrokenWarc(number + 1, offset, "a truncated record, or data that is not a record")
        except (ArchiveLoadFailed, OSError, EOFError, ValueError) as error:
            yield BrokenWarc(number + 1, offset, " ".join(str(error).split()) or type(error).__name__)


def _is_html(record: Any) -> bool:
    if record.rec_type == "response" and record.http_headers is not None:
        return record.http_headers.get_statuscode() == "200" and _media_type(record) in HTML_TYPES
    return record.rec_type == "resource" and _media_type(record) in HTML_TYPES


def _content_type(record: Any) -> str:
    headers = record.http_headers if record.http_headers is not None else record.rec_headers
    return headers.get_header("Content-Type") or ""


def _media_type(record: Any) -> str:
    return _content_type(record).partition(";")[0].strip().lower()


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
    return int(getattr(record.raw_stream, "limit", 0))
