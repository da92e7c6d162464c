"""HTML responses of WARC files, plain and compressed."""

import gzip
from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.runtime.readers import Extract
from dedup_service.runtime.readers.warc import BrokenWarc, read_warc

STORY = "The council opened the new bridge over the river on Monday morning after two years of work. "
CHINESE = "本市新建的大桥周一上午正式通车，沿线居民出行更加方便，施工历时两年。"


def warc_record(number: int, kind: str, url: str, block: bytes) -> bytes:
    """One record in the format of ISO 28500."""
    media_type = "application/http; msgtype=request" if kind == "request" else "application/http; msgtype=response"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
        f"WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def write_warc(path: Path, responses: list[tuple[str, str, str, bytes]], *, packed: bool) -> Path:
    """Write (url, status, content type, body) as response records, each with its request."""
    pieces = []
    for number, (url, status, media_type, body) in enumerate(responses):
        head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\n\r\n".encode()
        pieces.append(warc_record(2 * number, "response", url, head + body))
        pieces.append(warc_record(2 * number + 1, "request", url, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"))
    path.write_bytes(b"".join(gzip.compress(piece) if packed else piece for piece in pieces))
    return path


def html(text: str) -> str:
    """A page with one article."""
    return f"<html><body><article><p>{text}</p></article></body></html>"


RESPONSES = [
    ("https://a.example/1", "200 OK", "text/html; charset=utf-8", html(STORY * 3 + "one").encode()),
    ("https://a.example/logo.png", "200 OK", "image/png", b"\x89PNG"),
    ("https://a.example/gone", "404 Not Found", "text/html", html("gone").encode()),
    ("https://a.example/2", "200 OK", "text/html; charset=gb18030", html(CHINESE * 5).encode("gb18030")),
]


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An archive of two pages among other things."""
    return write_warc(tmp_path / ("a.warc.gz" if request.param else "a.warc"), RESPONSES, packed=request.param)


def test_html_responses_are_records(archive: Path, extract_html: Extract) -> None:
    """Other types, statuses and record types are skipped."""
    pages = [record.page(extract_html) for record in read_warc(archive)]
    assert [page.url for page in pages] == ["https://a.example/1", "https://a.example/2"]
    assert "opened the new bridge" in pages[0].text
    assert all(page.id.startswith("<urn:uuid:") for page in pages)


def test_the_declared_encoding_is_used(archive: Path, extract_html: Extract) -> None:
    """The HTTP header declares GB18030, and the page declares nothing."""
    assert CHINESE in list(read_warc(archive))[1].page(extract_html).text


def test_the_bytes_of_kept_records_are_an_archive(archive: Path, tmp_path: Path) -> None:
    """Concatenated, they are a WARC file with the same records."""
    records = list(read_warc(archive))
    copy = tmp_path / archive.with_stem("copy").name
    copy.write_bytes(b"".join(record.raw for record in records))
    assert [record.raw for record in read_warc(copy)] == [record.raw for record in records]
    assert all(record.raw in archive.read_bytes() for record in records)


def test_a_truncated_archive_ends_with_a_bad_record(archive: Path, extract_html: Extract) -> None:
    """Earlier records are read; the truncation is reported with its place."""
    whole = list(read_warc(archive))
    archive.write_bytes(archive.read_bytes()[: whole[1].offset + whole[1].size_bytes // 2])
    first, *rest = read_warc(archive)
    assert first.raw == whole[0].raw
    assert rest
    with pytest.raises(RecordError):
        [record.page(extract_html) for record in rest]


def test_a_file_that_is_not_an_archive_is_one_bad_record(tmp_path: Path, extract_html: Extract) -> None:
    """The problem is named, and reading does not raise."""
    path = tmp_path / "a.warc"
    path.write_bytes(b"hello\nthis is no archive\n")
    (broken,) = read_warc(path)
    assert isinstance(broken, BrokenWarc)
    with pytest.raises(RecordError, match="cannot be read from here on"):
        broken.page(extract_html)


def test_an_empty_archive_has_no_records(tmp_path: Path) -> None:
    """It has no bad record, either."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"")
    assert list(read_warc(path)) == []
