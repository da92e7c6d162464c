"""Records that stand for captures that an archive does not have in full, as WARC 1.1 has them.

revisit   of an equal payload: profile identical-payload-digest, with the HTTP headers of the visit, and the address,
          date and record of the capture that has the payload (ISO 28500:2017, 6.7.2).
metadata  of any other duplicate: application/warc-fields with its verdict and the page that it repeats. It refers to
          the record that it describes (6.6), the one that was left out. It is no revisit: the payloads differ.

Invariant: a record depends on its arguments alone, so that a run that is repeated writes the same archive; its id is
made of what it says and of its number in the archive.
"""

import gzip
import io
import uuid
from collections.abc import Mapping

from warcio.recordbuilder import RecordBuilder
from warcio.warcwriter import WARCWriter

from dedup_service.core.verdict import Verdict
from dedup_service.runtime.archives.kept_payloads import Original
from dedup_service.runtime.archives.visit import Visit
from dedup_service.runtime.readers.warc import GZIP, SEPARATOR

NO_DATE = "1970-01-01T00:00:00Z"
"""Of a capture without a date: WARC-Date is mandatory, and the present would differ with each run."""

_LINE_ENDS = {ord(end): " " for end in "\r\n"}


class _StoredHead:
    """HTTP headers that warcio writes as they were stored, instead of as it would format them."""

    def __init__(self, head: bytes) -> None:
        self.headers_buff = head

    def compute_headers_buffer(self, _filter: object) -> None:
        """Do nothing: the bytes are given."""


def packed_record(raw: bytes) -> bytes:
    """Return a record as it was read, compressed by itself if it is not."""
    if raw.startswith(GZIP):
        return raw
    return gzip.compress(raw if raw.endswith(SEPARATOR) else raw + SEPARATOR, mtime=0)


def revisit_record(visit: Visit, original: Original, number: int) -> bytes:
    """Return the compressed record of a visit whose payload is that of `original`. number: in the archive, from 1."""
    fields = {
        "WARC-Date": visit.date or NO_DATE,
        "WARC-IP-Address": visit.ip_address,
        "WARC-Profile": RecordBuilder.REVISIT_PROFILE_1_1,
        "WARC-Refers-To": original.record_id,
        "WARC-Refers-To-Target-URI": original.uri,
        "WARC-Refers-To-Date": original.date,
        "WARC-Payload-Digest": original.digest,
    }
    return _written("revisit", visit.uri, fields, visit.http_head, number)


def metadata_record(visit: Visit, verdict: Verdict, number: int) -> bytes:
    """Return the compressed record of a duplicate that was left out. number: in the archive, from 1."""
    said = {
        "verdict": verdict.kind.value,
        "duplicate-of": verdict.duplicate_of_url,
        "duplicate-of-id": verdict.duplicate_of,
        "distance-words": verdict.distance.words,
        "distance-body": verdict.distance.body,
        "score": verdict.score,
        "rule": verdict.reason,
        "sequence": verdict.sequence,
        "space": verdict.space,
    }
    body = "".join(f"{name}: {_line(value)}\r\n" for name, value in said.items() if value is not None)
    fields = {"WARC-Date": visit.date or NO_DATE, "WARC-Refers-To": visit.record_id}
    return _written("metadata", visit.uri, fields, body.encode(), number)


def _written(kind: str, uri: str, fields: Mapping[str, str | None], block: bytes, number: int) -> bytes:
    """Return a compressed record. block: of a revisit, HTTP headers or nothing; of others, all bytes."""
    headers = {name: _line(value) for name, value in fields.items() if value}
    said = "\n".join([kind, _line(uri), *(f"{name}: {value}" for name, value in headers.items()), str(number)])
    name = uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, said), block.hex())
    headers["WARC-Record-ID"] = f"<urn:uuid:{name}>"
    target = io.BytesIO()
    writer = WARCWriter(target, gzip=True, warc_version=RecordBuilder.WARC_1_1)
    is_revisit = kind == "revisit"
    record = writer.create_warc_record(
        _line(uri),
        kind,
        payload=None if is_revisit else io.BytesIO(block),
        length=len(block),
        warc_headers_dict=headers,
        http_headers=_StoredHead(block) if is_revisit and block else None,
    )
    if is_revisit and not block:
        record.content_type = None
    writer.write_record(record)
    return target.getvalue()


def _line(value: object) -> str:
    """Return a value in one line of UTF-8."""
    return str(value).translate(_LINE_ENDS).encode("utf-8", "backslashreplace").decode()
