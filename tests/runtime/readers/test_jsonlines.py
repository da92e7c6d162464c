"""A line of JSON and the page it describes."""

import io
import json
from dataclasses import replace

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.runtime.readers import jsonlines
from dedup_service.runtime.readers.jsonlines import JsonLine, json_of, read_json_lines, read_lines


def extracted(html: bytes | str, declared: str | None) -> Extraction:
    """An extraction that shows its arguments."""
    return Extraction(title="found", text=f"text of {html!r}", lang="en", keywords=("k",), date="2026-01-02")


def line(**values: object) -> JsonLine:
    """The record of one line."""
    return JsonLine(1, json.dumps(values).encode())


def test_every_key_is_read() -> None:
    """Values of the line are values of the page."""
    page = line(
        id="1",
        url="HTTPS://News.Example/a#top",
        title="T",
        text="body",
        lang="en",
        keywords=["a"],
        tags=["b"],
        references=["c"],
        date="2026-01-02",
        text_percent=71,
        more={"left": "alone"},
    ).page(extracted)
    assert (page.id, page.url, page.canonical_url) == ("1", "HTTPS://News.Example/a#top", "https://news.example/a")
    assert (page.title, page.text, page.lang, page.date) == ("T", "body", "en", "2026-01-02")
    assert page.text_percent == 71
    assert (page.keywords, page.tags, page.references) == (("a",), ("b",), ("c",))


def test_the_id_defaults_to_the_url() -> None:
    """Null and a missing key are the same."""
    assert line(url="https://a.example/x", text="t").page(extracted).id == "https://a.example/x"
    assert line(url="https://a.example/x", text="t", id=None, title=None).page(extracted).id == "https://a.example/x"


def test_text_precedes_html_and_metadata_precedes_extraction() -> None:
    """Extraction supplies what the line does not state."""
    assert line(url="https://a.example/", text="t", html="<p>h").page(extracted).text == "t"
    page = line(url="https://a.example/", html="<p>h", title="stated", tags=["s"]).page(extracted)
    assert (page.title, page.tags, page.keywords, page.date) == ("stated", ("s",), ("k",), "2026-01-02")
    assert page.text == "text of '<p>h'"


@pytest.mark.parametrize("stated", [0, 100, 70.6, None, -1, 101, 10**30])
def test_a_share_of_main_text_that_no_page_can_have_is_not_known(stated: float | None) -> None:
    """Then that of extraction counts; with a text there is none. A page has it as a whole number, also in its line."""

    def measured(html: bytes | str, declared: str | None) -> Extraction:
        return replace(extracted(html, declared), text_percent=7)

    expected = round(stated) if stated is not None and 0 <= stated <= 100 else None
    page = line(url="https://a.example/", text="t", text_percent=stated).page(measured)
    assert page.text_percent == expected
    assert JsonLine(1, json_of(page)).page(measured) == page
    assert json.loads(json_of(page)).get("text_percent") == expected
    page = line(url="https://a.example/", html="<p>h", text_percent=stated).page(measured)
    assert page.text_percent == (7 if expected is None else expected)
    for wrong in ("71", True, [71]):
        with pytest.raises(RecordError, match="not a page in JSON"):
            line(url="https://a.example/", text="t", text_percent=wrong).page(measured)


@pytest.mark.parametrize("body", [{"text": "t"}, {"html": "<p>h"}])
def test_a_canonical_url_is_a_claim_like_a_link(body: dict[str, str]) -> None:
    """A mobile page may claim the desktop page, but no other host or home page; its own address stays its own."""
    url = "https://m.a.example/x"
    names = {"https://a.example/x": "https://a.example/x", "https://b.example/x": None, "https://a.example/": None}
    for named, expected in names.items():
        page = line(url=url, canonical_url=named, **body).page(extracted)
        assert (page.canonical_url, page.claimed_url) == (url, expected)


def test_a_line_over_the_limit_is_a_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported with its number, and the next line is read."""
    monkeypatch.setattr(jsonlines, "MAX_RECORD_BYTES", 50)
    stream = io.BytesIO(line(url="https://a.example/", text="x" * 100).raw + b"\n" + line(url="https://a.example/").raw)
    long, short = (record for record in read_json_lines(stream) if record)
    assert (long.number, short.number) == (1, 2)
    with pytest.raises(RecordError, match="longer than 50 bytes"):
        long.page(extracted)
    assert short.page(extracted).problem == "neither text nor html given"


def test_the_same_line_is_the_same_delivery() -> None:
    """The identity is the bytes, wherever they are in a file: behind a byte order mark, and without a line end."""
    lines = ((1, b"a\n"), (1, b"\xef\xbb\xbfa\n"), (9, b"a\n"), (3, b"a\r\n"), (4, b"a"))
    assert len({JsonLine(number, raw).identity for number, raw in lines}) == 1
    assert JsonLine(1, b"a\n").identity != JsonLine(2, b"b\n").identity


def test_lines_and_records_agree() -> None:
    """Every line that is not blank is one record with the number of the line."""
    data = b"\n".join([b"{}", b"", b"x", b"  ", b"{}"])
    numbers = [record.number for record in read_json_lines(io.BytesIO(data)) if record]
    assert numbers == [1, 3, 5]
    assert len(list(read_lines(io.BytesIO(data), 100))) == 5
