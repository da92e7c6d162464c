"""WARC: any bytes are records or places that are none, and any body is decoded or refused."""

import gzip
import io
import zlib
from itertools import pairwise
from pathlib import Path

import brotli
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.runtime.readers.http_body import BodyError, decoded_body
from dedup_service.runtime.readers.record import BrokenInput
from dedup_service.runtime.readers.warc import WarcRecord, read_warc
from tests.fuzz.budget import Budget, within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated

BODY = b"<html><body><p>The council opened the new bridge.</p></body></html>"
PACKERS = {
    "": bytes,
    "gzip": lambda body: gzip.compress(body, mtime=0),
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}
DECODED = Budget(mebibytes=96)
"""Decoders of zstd and brotli have windows of up to 16 MiB each, and a body may name four codings."""


def chunked(body: bytes, size: int) -> bytes:
    """Return a body in chunks."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def record(kind: str, http: bytes, body: bytes, more: bytes, length: int) -> bytes:
    """Return a WARC record; its Content-Length is wrong by `length`."""
    block = http + body
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
        f"WARC-Target-URI: https://a.example/1\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block) + length}\r\n"
    )
    return head.encode() + more + b"\r\n" + block + b"\r\n\r\n"


def http_of(coding: str, transfer: str) -> bytes:
    """Return the headers of a response."""
    stated = f"Content-Encoding: {coding}\r\n" * bool(coding) + f"Transfer-Encoding: {transfer}\r\n" * bool(transfer)
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{stated}\r\n".encode()


RECORDS = st.builds(
    lambda kind, coding, named, size, more, length: record(
        kind,
        http_of(named if named is not None else coding, "chunked" if size else ""),
        chunked(PACKERS[coding](BODY), size) if size else PACKERS[coding](BODY),
        more,
        length,
    ),
    st.sampled_from(["response", "response", "response", "resource", "request", "revisit", "warcinfo", ""]),
    st.sampled_from([*PACKERS]),
    st.none() | st.sampled_from([*PACKERS, "gzip, br", "br,br,br,br", "gzip,gzip,gzip,gzip,gzip", "identity", "x"]),
    st.integers(0, 40),
    st.sampled_from(
        [b"", b"WARC-Truncated: length\r\n", b"Content-Length: 3\r\n", b"Content-Length: x\r\n", b" folded\r\n"]
    ),
    st.sampled_from([0, 0, 0, 0, 1, -1, 40, -40, 10**6, 10**30]),
)
PIECES = (
    *(b"\r\n", b"\n", b"\r\n\r\n", b"WARC/1.0\r\n", b"WARC/1.1\n", b"\x1f\x8b\x08", b"HTTP/1.1 200 OK\r\n"),
    *(b"\0", b"\xff"),
    *(b"Content-Length: -1\r\n", b"Content-Length: 0\r\n", b"WARC-Type: response\r\n", b":", b"\x1f\x8b\x08\0" * 50),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b"ffffffff\r\n",
        b"0\r\n\r\n",
        b"filedesc://a 1 2 3 4\n",
    ),
)
ARCHIVES = st.builds(
    lambda records, packed: b"".join(gzip.compress(piece, mtime=0) if packed else piece for piece in records),
    st.lists(mutated(RECORDS, PIECES) | RECORDS, min_size=1, max_size=4),
    st.booleans(),
)
FILES = mutated(ARCHIVES, PIECES) | ARCHIVES | st.lists(st.sampled_from(PIECES)).map(b"".join) | st.binary()


def extracted(html: bytes | str, declared: str | None) -> Extraction:
    """Stand for the extraction, which `test_html` has."""
    return Extraction(text=repr(html), title=declared or "")


def offset_of(found: WarcRecord | BrokenInput) -> int:
    """Return the byte at which a record, or a place that is none, begins; it is the last word of its place."""
    return int(found.place.rpartition(" ")[2])


def check(data: bytes, path: Path) -> None:
    """What must hold for any file."""
    path.write_bytes(data)
    with within(data, budget=DECODED):
        records = list(read_warc(path))
        for found in records:
            try:
                page = found.page(extracted)
            except RecordError:
                pass
            else:
                assert page.url
                assert page.id
    for found in records:
        assert 0 <= offset_of(found) <= len(data)
        assert data.startswith(found.raw, offset_of(found)), "the bytes of a record are those of the file"
    for one, other in pairwise(records):
        assert one.number < other.number
        assert offset_of(one) + (len(one.raw) if isinstance(one, WarcRecord) else 1) <= offset_of(other), (
            "in the order of the file"
        )


def check_body(body: bytes, transfer: str, encodings: str, limit_bytes: int) -> None:
    """What must hold for any body under any headers."""
    with within(body, budget=DECODED):
        try:
            decoded = decoded_body(
                lambda: io.BytesIO(body), transfer=transfer, encodings=encodings, limit_bytes=limit_bytes
            )
        except BodyError:
            return
    assert len(decoded) <= limit_bytes
    if not transfer and not encodings:
        assert decoded == body[:limit_bytes]


@fuzzed(60)
@given(data=FILES)
def test_any_file_is_records_and_places_that_are_none(data: bytes, tmp_path: Path) -> None:
    """Nothing raises; records are parts of the file, in its order, and do not overlap."""
    check(data, tmp_path / "a.warc")


@fuzzed(40)
@given(
    body=mutated(st.sampled_from([chunked(BODY, 9), *(pack(BODY * 20) for pack in PACKERS.values())]), PIECES)
    | st.binary(),
    transfer=st.sampled_from(["", "chunked", "gzip, chunked", "x"]),
    encodings=st.lists(st.sampled_from([*PACKERS, "x-gzip", "identity", "x"]), max_size=5).map(",".join),
    limit_bytes=st.integers(1, 4_000),
)
def test_any_body_is_decoded_or_refused(body: bytes, transfer: str, encodings: str, limit_bytes: int) -> None:
    """Never more than the limit, and only `BodyError`."""
    check_body(body, transfer, encodings, limit_bytes)


@fuzzed(20)
@given(
    size=st.integers(0, 1 << 22),
    codings=st.lists(st.sampled_from([name for name in PACKERS if name]), min_size=1, max_size=4),
    limit_bytes=st.integers(1, 1 << 20),
)
def test_a_body_that_was_packed_is_unpacked_within_the_limit(size: int, codings: list[str], limit_bytes: int) -> None:
    """The codings are undone in reverse, and a body of zeros costs no more than the limit and one step."""
    body = bytes(size)
    for coding in codings:
        body = PACKERS[coding](body)
    with within(body, budget=DECODED):
        decoded = decoded_body(lambda: io.BytesIO(body), encodings=", ".join(codings), limit_bytes=limit_bytes)
    assert decoded == bytes(min(size, limit_bytes))
