"""What a WARC record says of one capture: address, date, HTTP headers, and what identifies its payload.

A payload is the entity body of an HTTP response: its bytes without the HTTP headers and the transfer coding, with its
content codings; of a resource, all its bytes (ISO 28500:2017, 6.3.2 and annex on payloads). Whether two payloads are
equal is decided by a digest that is computed here, not by the WARC-Payload-Digest that a record states: that may be
missing, made of the chunks, or wrong, and a revisit record that rests on a wrong one loses a page.

Payloads stored with chunks and without are not equal here. A revisit is replayed with its own HTTP headers and the
stored bytes of its original, so both have to say the same of the transfer coding.
"""

import hashlib
import io
from dataclasses import dataclass
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecordLoader
from warcio.statusandheaders import StatusAndHeadersParser
from warcio.timeutils import iso_date_to_timestamp
from warcio.utils import Digester

from dedup_service.runtime.readers.http_body import BodyError, entity_pieces, is_chunked

PAYLOAD_TYPES = frozenset({"response", "resource"})
EMPTY_LINES = (b"\r\n", b"\n", b"")
_HTTP = StatusAndHeadersParser(ArcWarcRecordLoader.HTTP_TYPES, verify=False)


@dataclass(frozen=True, slots=True)
class Payload:
    """What identifies a payload.

    key: equal for equal payloads, and not for others. digest: a WARC-Payload-Digest, by which indexes name the payload:
    the one that the record states, otherwise the one that indexers compute.
    """

    key: bytes
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One capture.

    date: WARC-Date; None if there is none that can be read. record_id: WARC-Record-ID. http_head: HTTP status line and
    headers with the empty line; b"" for a resource. payload: None if it is empty, cut off or cannot be read,
    or if the record is no capture itself (a conversion).
    """

    uri: str
    date: str | None = None
    record_id: str | None = None
    ip_address: str | None = None
    http_head: bytes = b""
    payload: Payload | None = None


def read_visit(raw: bytes) -> Visit | None:
    """Return the capture of one WARC record, compressed or not; None if the record cannot be read."""
    try:
        record = next(iter(ArchiveIterator(io.BytesIO(raw), no_record_parse=True)))
        return _visit(record)
    except MemoryError:
        raise
    except Exception:  # warcio raises whatever it meets: AttributeError, StopIteration, zlib.error
        return None


def stored_digest(stream: Any) -> str:
    """Return the digest of the rest of a stream as warcio states it in WARC-Payload-Digest: of the bytes as stored."""
    digested = _Digested(stream)
    digested.read_to_end()
    return str(digested.digester)


def _visit(record: Any) -> Visit | None:
    headers = record.rec_headers
    uri = headers.get_header("WARC-Target-URI")
    if not uri:
        return None
    is_http = record.rec_type == "response" and uri.lower().startswith(("http:", "https:"))
    head = _head(record.raw_stream) if is_http else b""
    is_whole = record.rec_type in PAYLOAD_TYPES and not headers.get_header("WARC-Truncated")
    return Visit(
        uri=uri,
        date=_date(headers.get_header("WARC-Date")),
        record_id=headers.get_header("WARC-Record-ID") or None,
        ip_address=headers.get_header("WARC-IP-Address") or None,
        http_head=head,
        payload=_payload(record, head) if is_whole else None,
    )


def _head(stream: Any) -> bytes:
    """Read the status line and the headers, which leaves the stream at the payload."""
    lines = [stream.readline()]
    while lines[-1] not in EMPTY_LINES:
        lines.append(stream.readline())
    return b"".join(lines)


def _payload(record: Any, head: bytes) -> Payload | None:
    transfer = (_HTTP.parse(io.BytesIO(head)).get_header("Transfer-Encoding") or "") if head else ""
    stored = _Digested(record.raw_stream)
    entity, size = hashlib.sha256(b"chunks" if is_chunked(transfer) else b"entity" if head else b"resource"), 0
    try:
        for piece in entity_pieces(stored, transfer):
            entity.update(piece)
            size += len(piece)
        stored.read_to_end()
    except BodyError:
        return None
    if size == 0:
        return None
    stated = record.rec_headers.get_header("WARC-Payload-Digest")
    return Payload(entity.digest(), stated or str(stored.digester))


class _Digested:
    """A stream that digests what is read of it, as warcio and indexers digest a payload: with its chunks."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.digester = Digester("sha1")

    def read(self, size: int, /) -> bytes:
        piece: bytes = self._stream.read(size)
        self.digester.update(piece)
        return piece

    def read_to_end(self) -> None:
        """Read the rest, such as what is behind the last chunk."""
        while self.read(2**16):
            pass


def _date(value: str | None) -> str | None:
    try:
        return value if value and iso_date_to_timestamp(value) else None
    except ValueError:
        return None
