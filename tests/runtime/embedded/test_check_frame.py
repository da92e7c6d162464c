"""`check_text`, `check_many` with dicts, `check_frame`: pages from values, rows and frames."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dedup_service import ConfigurationError, NearDuplicateFilter, Page, RecordError, VerdictKind
from tests.interfaces.cli.running import article

pa = pytest.importorskip("pyarrow")
TEXTS = [article(number) for number in range(3)]
URLS = [f"https://news.example/{number}" for number in range(3)]


class Frame:
    """A frame of a library that twinsieve does not know."""

    def __init__(self, **columns: Any) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def dedup() -> Iterator[NearDuplicateFilter]:
    """A filter in memory."""
    with NearDuplicateFilter.open(None) as opened:
        yield opened


def test_a_page_needs_no_more_than_its_url(dedup: NearDuplicateFilter) -> None:
    """The canonical URL is derived from the URL, and the id is the URL; what is no Web address stands as it is."""
    page = Page(url="https://news.example/1?utm_source=x", text=TEXTS[0])
    assert (page.canonical_url, page.id) == ("https://news.example/1", page.url)
    assert Page(url=" row 17 ").canonical_url == "row 17"
    assert Page(url="https://a.example/", canonical_url="https://b.example/", id="").id == ""
    assert dedup.check(page).kind is VerdictKind.UNIQUE
    assert dedup.check(Page(url="https://news.example/1", text=TEXTS[0])).kind is VerdictKind.UNCHANGED


def test_a_text_is_checked_with_its_url(dedup: NearDuplicateFilter) -> None:
    """Title and id are optional, and a delivery that is repeated has the verdict that it had."""
    first = dedup.check_text(TEXTS[0], "urn:isbn:1", title="A story", id="a", delivery_id=b"1")
    assert (first.kind, first.id, first.url) == (VerdictKind.UNIQUE, "a", "urn:isbn:1")
    assert dedup.check_text(TEXTS[0], "urn:isbn:2").duplicate_of == "a"
    assert dedup.check_text(TEXTS[0], "urn:isbn:1", title="A story", id="a", delivery_id=b"1") == first
    with pytest.raises(RecordError, match="`text`: expected"):
        dedup.check_text(7, "urn:isbn:3")  # type: ignore[arg-type]


def test_dicts_and_pages_are_checked_together(dedup: NearDuplicateFilter) -> None:
    """A dict has the keys of a line of JSON, HTML included; others are ignored."""
    html = f"<html><body><article><h1>Story</h1><p>{TEXTS[1]}</p></article></body></html>"
    pages = [
        {"url": URLS[0], "text": TEXTS[0], "id": 7, "score": object()},
        Page(url=URLS[1], text=TEXTS[1]),
        {"url": URLS[2], "html": html},
    ]
    verdicts = dedup.check_many(pages)
    assert [verdict.kind.value for verdict in verdicts] == ["unique", "unique", "duplicate"]
    assert (verdicts[0].id, verdicts[2].duplicate_of_url) == ("7", URLS[1])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": "A text."}, "pages[1]: `url` is missing"),
        ({"url": "  "}, "pages[1]: `url` is empty"),
        ({"url": URLS[1], "title": float("nan")}, "pages[1]: `title`: expected `str | null`, got `float`"),
        ({"url": URLS[1], "tags": ["a", 1]}, "pages[1]: `tags[1]`: expected `str`, got `int`"),
        (URLS[1], "pages[1]: expected a Page or a dict with its values, got `str`"),
        (Page(url=URLS[1], text=None), "pages[1]: `text` has a value of a wrong type"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_page_is_named_and_nothing_is_decided(dedup: NearDuplicateFilter, wrong: Any, message: str) -> None:
    """The message has the place in the list, and the field."""
    with pytest.raises(RecordError) as caught:
        dedup.check_many([{"url": URLS[0], "text": TEXTS[0]}, wrong])
    assert str(caught.value) == message
    assert dedup.last_sequence == 0


def test_rows_of_any_frame_have_verdicts_beside_them(dedup: NearDuplicateFilter) -> None:
    """The table has the rows of the frame in their order, none of its columns, and more rows than a batch has."""
    count = 1_100
    frame = Frame(
        link=[f"https://news.example/{at}" for at in range(count)], body=[TEXTS[0], *[None] * (count - 2), TEXTS[0]]
    )
    verdicts = dedup.check_frame(frame, text="body", url="link")
    assert verdicts["verdict"].to_pylist() == ["unique", *["undecided"] * (count - 2), "duplicate"]
    assert verdicts["sequence"].to_pylist() == list(range(1, count + 1))
    assert not {"id", "url", "link", "body"} & set(verdicts.column_names)
    assert verdicts["duplicate_of_url"][-1].as_py() == "https://news.example/0"


def test_names_of_columns_are_ours_unless_they_are_given(dedup: NearDuplicateFilter) -> None:
    """Columns with our names are used; numbers and objects are read as in Parquet; an empty frame has no verdicts."""
    frame = Frame(url=URLS, text=TEXTS, id=[1, 2, 3], meta=[{"lang": "en"}] * 3)
    assert set(dedup.check_frame(frame, lang="meta.lang")["verdict"].to_pylist()) == {"unique"}
    copy = Frame(url=["https://copy.example/"], text=TEXTS[:1])
    assert dedup.check_frame(copy)["duplicate_of"].to_pylist() == ["1"]
    empty = dedup.check_frame(Frame(url=pa.array([], pa.string()), text=pa.array([], pa.string())))
    assert (empty.num_rows, empty.column_names[0]) == (0, "verdict")


def test_a_wrong_row_is_named_and_nothing_is_decided(dedup: NearDuplicateFilter) -> None:
    """Also behind the first batch: all rows are looked at before the first one is decided."""
    frame = Frame(url=[*URLS[:1] * 600, None], text=[*TEXTS[:1] * 600, "x"])
    with pytest.raises(RecordError, match="row 600: `url` is missing"):
        dedup.check_frame(frame)
    with pytest.raises(RecordError, match="row 0: `keywords`: expected"):
        dedup.check_frame(Frame(url=URLS, text=TEXTS, keywords=["a", "b", "c"]))
    assert dedup.last_sequence == 0


def test_a_frame_that_cannot_be_read_says_what_to_do(dedup: NearDuplicateFilter) -> None:
    """Columns that are missing, names that are no value of a page, and what is no frame."""
    with pytest.raises(ConfigurationError, match="no column 'text', it has url, body: name them, as check_frame"):
        dedup.check_frame(Frame(url=URLS, body=TEXTS))
    with pytest.raises(ConfigurationError, match="'titel' is no value of a page: name one of url, id, title"):
        dedup.check_frame(Frame(url=URLS, text=TEXTS), titel="headline")
    with pytest.raises(ConfigurationError, match="list does not speak the Arrow interchange"):
        dedup.check_frame([{"url": URLS[0]}])


def test_without_pyarrow_the_extra_is_named(dedup: NearDuplicateFilter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs it."""
    frame = Frame(url=URLS, text=TEXTS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigurationError, match=r"check_frame needs pyarrow.*pip install 'twinsieve\[parquet\]'"):
        dedup.check_frame(frame)
