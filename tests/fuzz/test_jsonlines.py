"""JSON lines: any bytes are lines, each a page or a bad record."""

import gzip
import io

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.runtime.readers.columns import PageJson
from dedup_service.runtime.readers.jsonlines import JsonLine, read_json_lines, read_lines
from dedup_service.runtime.readers.record import BrokenInput
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import VALUES, altered, mutated

KEYS = st.sampled_from(PageJson.__struct_fields__)
URLS = st.sampled_from(["https://a.example/1", "https://a.example/2?utm_source=x", "urn:x", "file:///a", " ", "//a"])
OBJECTS = st.builds(
    lambda url, known, more: {**more, "url": url, "text": "A text.", **known},
    URLS,
    st.dictionaries(KEYS, st.text(max_size=8) | VALUES, max_size=4),
    st.dictionaries(st.text(max_size=8), VALUES, max_size=2),
)
PAGES = st.builds(
    PageJson,
    url=URLS,
    id=st.none() | st.text(),
    title=st.none() | st.text(),
    text=st.text(),
    lang=st.none() | st.text(),
)
LINES = OBJECTS.map(msgspec.json.encode) | PAGES.map(msgspec.json.encode)
PIECES = (
    *(b'"', b"\\", b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b"[" * 3_000, b'{"url":' * 3_000, b"1e999", b"NaN"),
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xed\xa0\x80",
        b'"url":"https://b.example/",',
        b"9" * 400,
    ),
)
FILES = (
    st.lists(mutated(LINES, PIECES) | altered(PAGES.map(msgspec.json.encode)), max_size=5).map(b"\n".join) | st.binary()
)


def extracted(html: bytes | str, declared: str | None) -> Extraction:
    """Stand for the extraction, which `test_html` has."""
    return Extraction(text=str(html), title=declared or "")


def page_of(record: JsonLine | BrokenInput) -> Page | None:
    """Return the page, None for a bad record."""
    try:
        return record.page(extracted)
    except RecordError:
        return None


def check(data: bytes) -> None:
    """What must hold for any file."""
    with within(data):
        records = list(read_json_lines(io.BytesIO(data)))
        pages = [page_of(record) for record in records if record is not None]
    lines = data.split(b"\n")
    assert [record.number for record in records if record] == [at for at, line in enumerate(lines, 1) if line.strip()]
    assert b"".join(record.raw for record in records if record).split() == data.split()
    for page in pages:
        if page is not None:
            assert page.url.strip()
            assert page.canonical_url
            assert page.id


def check_lines(data: bytes, limit_bytes: int) -> None:
    """What must hold for any file under any limit."""
    with within(data):
        lines = [line for line in read_lines(io.BytesIO(data), limit_bytes) if line is not None]
    expected = data.splitlines(keepends=True) if b"\r" not in data else None
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert all(line.cut or len(line.raw) <= limit_bytes for line in lines)
    if not any(line.cut for line in lines):
        assert b"".join(line.raw for line in lines) == data
        assert expected is None or all(b"\n" not in line.raw[:-1] for line in lines)


def check_packed(data: bytes) -> None:
    """What must hold for any file that is said to be gzip."""
    with within(data):
        records = list(read_json_lines(gzip.GzipFile(fileobj=io.BytesIO(data))))  # type: ignore[arg-type]
        for record in records:
            if record is not None:
                page_of(record)
    assert not any(isinstance(record, BrokenInput) for record in records[:-1]), "it ends the input"


@fuzzed(50)
@given(data=FILES)
def test_any_file_is_lines_that_are_pages_or_bad_records(data: bytes) -> None:
    """Every line that is not blank is one record, in its order, with its bytes."""
    check(data)


@fuzzed(20)
@given(data=FILES, limit_bytes=st.integers(0, 200))
def test_any_bytes_are_lines_within_a_limit(data: bytes, limit_bytes: int) -> None:
    """Lines are numbered, and together they are the file unless one is cut."""
    check_lines(data, limit_bytes)


@fuzzed(20)
@given(data=mutated(FILES.map(lambda data: gzip.compress(data, mtime=0))) | st.binary())
def test_a_damaged_gzip_file_ends_with_a_bad_record(data: bytes) -> None:
    """What comes before the damage is read, and nothing raises."""
    check_packed(data)


@fuzzed(20)
@given(line=PAGES)
def test_a_page_is_read_as_it_was_written(line: PageJson) -> None:
    """Text, title and language of a line are those of its page."""
    page = page_of(JsonLine(1, msgspec.json.encode(line)))
    if not line.url.strip():
        assert page is None
        return
    assert page is not None
    assert (page.url, page.text, page.title, page.lang) == (line.url, line.text, line.title or "", line.lang)
    assert page.id == (line.id or line.url)
