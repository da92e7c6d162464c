"""HTML responses of WARC files, plain and compressed."""

import gzip
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import zstandard

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.runtime.readers.record import BrokenInput, Extract
from dedup_service.runtime.readers.warc import read_warc

STORY = "The council opened the new bridge over the river on Monday morning after two years of work. "
CHINESE = "本市新建的大桥周一上午正式通车，沿线居民出行更加方便，施工历时两年。"


def warc_record(number: int, kind: str, url: str, block: bytes, *, length: int | None = None, more: str = "") -> bytes:
    """One record in the format of ISO 28500. length: what it states. more: further headers."""
    media_type = "application/http; msgtype=request" if kind == "request" else "application/http; msgtype=response"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
        f"WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(block) if length is None else length}\r\n{more}\r\n"
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


def test_a_record_is_the_same_before_its_line_ends_are_written(tmp_path: Path) -> None:
    """A crawler that is interrupted between the two leaves an archive that is read, and grows."""
    path = tmp_path / "a.warc"
    whole = warc_record(0, "response", "https://a.example/1", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a")
    identities = []
    for end in (0, 2, 4):
        path.write_bytes(whole[: len(whole) - 4 + end])
        identities += [record.identity for record in read_warc(path) if not isinstance(record, BrokenInput)]
    assert len(identities) == 3
    assert len(set(identities)) == 1


def test_an_archive_that_was_packed_as_a_whole_has_to_be_unpacked(tmp_path: Path) -> None:
    """One gzip member with many records has no place of each: the bad record says what to do."""
    plain = write_warc(tmp_path / "a.warc", RESPONSES, packed=False)
    packed = tmp_path / "b.warc.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    (record,) = read_warc(packed)
    assert isinstance(record, BrokenInput)
    assert "gzip -d" in record.problem


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


def test_a_file_that_is_not_an_archive_is_one_bad_record(tmp_path: Path, extract_html: Extract) -> None:
    """The problem is named, and reading does not raise."""
    path = tmp_path / "a.warc"
    path.write_bytes(b"hello\nthis is no archive\n")
    (broken,) = read_warc(path)
    assert isinstance(broken, BrokenInput)
    with pytest.raises(RecordError, match="cannot be read here"):
        broken.page(extract_html)


def response(number: int, body: bytes, http: str = "", **stated: object) -> bytes:
    """A response record with further HTTP headers."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{http}\r\n"
    return warc_record(number, "response", f"https://a.example/{number}", head.encode() + body, **stated)


def article(number: int) -> bytes:
    """An HTML page that its number tells from others."""
    return html(f"{STORY * 3} number{number}").encode()


def outcomes(path: Path, extract_html: Extract) -> list[str]:
    """For each record its URL, or the problem."""
    given = []
    for record in read_warc(path):
        try:
            given.append(record.page(extract_html).url)
        except RecordError as error:
            given.append(str(error))
    return given


def raw_deflate(data: bytes) -> bytes:
    """Deflate without its zlib wrapper, as some servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def chunks(data: bytes, size: int = 700) -> bytes:
    """Chunked transfer."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


ENCODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "brotli": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "zlib": ("deflate", zlib.compress),
    "deflate": ("Deflate", raw_deflate),
    "gzip": ("gzip", gzip.compress),
    "members": ("x-gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "two": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("chunked", [False, True])
def test_content_encodings_are_decoded(name: str, chunked: bool, tmp_path: Path, extract_html: Extract) -> None:
    """One brotli response ended the whole run with a traceback."""
    label, encode = ENCODINGS[name]
    body = chunks(encode(article(2))) if chunked else encode(article(2))
    headers = f"Content-Encoding: {label}\r\n" + ("Transfer-Encoding: Chunked\r\n" if chunked else "")
    path = tmp_path / "a.warc"
    path.write_bytes(response(1, article(1)) + response(2, body, headers) + response(3, article(3)))
    texts = [record.page(extract_html).text for record in read_warc(path)]
    assert [re.findall("number[0-9]", text) for text in texts] == [["number1"], ["number2"], ["number3"]]


BROKEN_BODIES = {
    "truncated brotli": ("br", brotli.compress(article(2))[:-9]),
    "truncated zstd": ("zstd", zstandard.compress(article(2))[:-9]),
    "truncated gzip": ("gzip", gzip.compress(article(2))[:-9]),
    "gzip called brotli": ("br", gzip.compress(article(2))),
    "brotli called zstd": ("zstd", brotli.compress(article(2))),
    "not known": ("compress", b"\x1f\x9d\x90\x00"),
    "too many": ("br, br, br, br, br", brotli.compress(article(2))),
}


@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_a_body_that_does_not_decode_is_a_bad_record(name: str, tmp_path: Path, extract_html: Extract) -> None:
    """The records around it are read."""
    label, body = BROKEN_BODIES[name]
    path = tmp_path / "a.warc"
    broken = response(2, body, f"Content-Encoding: {label}\r\n")
    path.write_bytes(response(1, article(1)) + broken + response(3, article(3)))
    first, problem, last = outcomes(path, extract_html)
    assert (first, last) == ("https://a.example/1", "https://a.example/3")
    assert f"does not decode as {label}" in problem


@pytest.mark.parametrize("cut", [-1, -300, -1500])
def test_chunks_that_end_early_are_a_bad_record(cut: int, tmp_path: Path, extract_html: Extract) -> None:
    """If the archive states that it cut the response, what there is of it is a page."""
    path, headers = tmp_path / "a.warc", "Transfer-Encoding: chunked\r\n"
    body = chunks(article(1) * 9)[: cut - 4]
    stated = response(2, body, headers, more="WARC-Truncated: length\r\n")
    path.write_bytes(response(1, body, headers) + stated)
    problem, url = outcomes(path, extract_html)
    assert "does not decode as chunked" in problem
    assert url == "https://a.example/2"


@pytest.mark.parametrize("label", ["br", "gzip", "deflate", "zstd", "utf-8"])
def test_a_body_stored_decoded_under_its_old_headers_is_a_page(
    label: str, tmp_path: Path, extract_html: Extract
) -> None:
    """Several crawlers write such archives."""
    path = tmp_path / "a.warc"
    headers = f"Content-Encoding: {label}\r\nTransfer-Encoding: chunked\r\n"
    path.write_bytes(response(1, article(1), headers))
    assert outcomes(path, extract_html) == ["https://a.example/1"]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_body_that_decodes_to_much_more_is_read_up_to_the_limit(
    name: str, tmp_path: Path, extract_html: Extract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is too large to be judged, and that is all that is known of it."""
    sizes = []

    def extract(body: bytes | str, declared: str | None) -> object:
        sizes.append(len(body))
        return extract_html(body, declared)

    label, encode = ENCODINGS[name]
    path = tmp_path / "a.warc"
    path.write_bytes(response(1, encode(bytes(MAX_PAGE_SIZE + 2)), f"Content-Encoding: {label}\r\n"))
    (record,) = read_warc(path)
    assert "too large" in (record.page(extract).problem or "")  # type: ignore[arg-type]
    assert sizes == [MAX_PAGE_SIZE + 1]


GARBAGE = b"garbage \x1f\x8b\x08 between \r\n two records\n" * 3
LYING = {
    "garbage": GARBAGE,
    "zeros": bytes(100),
    "length too short": response(2, article(2), length=40),
    "length too long": response(2, article(2), length=3000),
    "length beyond the end": response(2, article(2), length=10**12),
    "length negative": response(2, article(2), length=-5),
    "length no number": response(2, article(2)).replace(b"Content-Length: ", b"Content-Length: x"),
    "no length": response(2, article(2)).replace(b"Content-Length: ", b"Content-Size: "),
    "endless headers": b"WARC/1.0\r\n" + b"X: y\r\n" * 300_000 + b"\r\n",
    "endless header": b"WARC/1.0\r\nX: " + b"y" * 2_000_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LYING)
def test_what_is_no_record_is_reported_and_reading_continues_behind_it(
    name: str, packed: bool, tmp_path: Path, extract_html: Extract
) -> None:
    """It ended the file, or the next record vanished in it."""
    pack = gzip.compress if packed else bytes
    path = tmp_path / ("a.warc.gz" if packed else "a.warc")
    pieces = [response(1, article(1)), LYING[name], response(3, article(3)), response(4, article(4))]
    path.write_bytes(b"".join(map(pack, pieces)))
    first, *problems, third, fourth = outcomes(path, extract_html)
    assert [first, third, fourth] == [f"https://a.example/{number}" for number in (1, 3, 4)]
    assert problems
    assert all("cannot be read here" in problem for problem in problems)


@pytest.mark.parametrize("damage", [5, 30, 200])
def test_a_damaged_gzip_member_costs_itself(damage: int, tmp_path: Path, extract_html: Extract) -> None:
    """The members behind it are read."""
    members = [gzip.compress(response(number, article(number))) for number in (1, 2, 3)]
    members[1] = members[1][:damage] + b"\xff\xff\xff" + members[1][damage + 3 :]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(members))
    first, *problems, last = outcomes(path, extract_html)
    assert (first, last) == ("https://a.example/1", "https://a.example/3")
    assert problems


def test_members_that_all_reach_to_the_end_of_the_file_are_read_in_linear_time(tmp_path: Path) -> None:
    """800 gzip members in each stored block of 60 KB, and all continue with the blocks after it."""
    member, length = gzip.compress(b"", mtime=0)[:10], 60_000

    def stored(content: bytes, size: int) -> bytes:
        return b"\x00" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + content

    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 99999999\r\n\r\n"
    nested = b""
    while len(nested) < length - 100:
        nested += member + stored(head, length - len(nested) - 15)
    nested = nested.ljust(length, b"x")
    path = tmp_path / "nested.warc.gz"
    path.write_bytes(member + stored(head + nested, len(head) + length) + 200 * stored(nested, length))
    started = time.process_time()
    found = list(read_warc(path))
    assert time.process_time() - started < 20
    assert all(isinstance(record, BrokenInput) for record in found)


def test_responses_without_what_every_record_has_are_bad_records(tmp_path: Path, extract_html: Extract) -> None:
    """Warcio raises AttributeError for some of them."""
    path = tmp_path / "a.warc"
    nameless = response(1, article(1)).replace(b"WARC-Target-URI: https://a.example/1\r\n", b"")
    headless = warc_record(2, "response", "https://a.example/2", b"")
    path.write_bytes(nameless + headless + response(3, article(3)))
    *problems, last = outcomes(path, extract_html)
    assert last == "https://a.example/3"
    assert len(problems) == 2
    assert "has no WARC-Target-URI" in problems[0]
