"""A line of JSON and the page it describes."""

import io
import json

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.runtime.readers import jsonlines
from dedup_service.runtime.readers.jsonlines import JsonLine, read_json_lines, read_lines


def found(html: bytes | str, declared: str | None) -> Extraction:
    """An extraction that shows what it was given."""
    return Extraction(title="found", text=f"text of {html!r}", lang="en", keywords=("k",), date="2026-01-02")


def line(**values: object) -> JsonLine:
    """The record of one line."""
    return JsonLine(1, json.dumps(values).encode())


def test_every_key_arrives() -> None:
    """What the line states is what the page says."""
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
        more={"left": "alone"},
    ).page(found)
    assert (page.id, page.url, page.canonical_url) == ("1", "HTTPS://News.Example/a#top", "https://news.example/a")
    assert (page.title, page.text, page.lang, page.date) == ("T", "body", "en", "2026-01-02")
    assert (page.keywords, page.tags, page.references) == (("a",), ("b",), ("c",))


def test_a_page_without_id_is_called_by_its_url() -> None:
    """Null and missing are the same."""
    assert line(url="https://a.example/x", text="t").page(found).id == "https://a.example/x"
    assert line(url="https://a.example/x", text="t", id=None, title=None).page(found).id == "https://a.example/x"


def test_text_goes_before_html_and_what_is_stated_before_what_is_found() -> None:
    """Extraction fills in what the line leaves open."""
    assert line(url="https://a.example/", text="t", html="<p>h").page(found).text == "t"
    page = line(url="https://a.example/", html="<p>h", title="stated", tags=["s"]).page(found)
    assert (page.title, page.tags, page.keywords, page.date) == ("stated", ("s",), ("k",), "2026-01-02")
    assert page.text == "text of '<p>h'"


@pytest.mark.parametrize("body", [{"text": "t"}, {"html": "<p>h"}])
def test_a_stated_canonical_address_is_believed_as_a_link_would_be(body: dict[str, str]) -> None:
    """A mobile page belongs to the full one; another host or a home page that it names counts for nothing."""
    url = "https://m.a.example/x"
    names = {"https://a.example/x": "https://a.example/x", "https://b.example/x": url, "https://a.example/": url}
    for named, expected in names.items():
        assert line(url=url, canonical_url=named, **body).page(found).canonical_url == expected


def test_a_line_over_the_limit_is_a_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by its number, and the next line is read."""
    monkeypatch.setattr(jsonlines, "MAX_RECORD_BYTES", 50)
    stream = io.BytesIO(line(url="https://a.example/", text="x" * 100).raw + b"\n" + line(url="https://a.example/").raw)
    long, short = (record for record in read_json_lines(stream) if record)
    assert (long.number, short.number) == (1, 2)
    with pytest.raises(RecordError, match="longer than 50 bytes"):
        long.page(found)
    assert short.page(found).problem == "neither text nor html given"


def test_the_same_line_is_the_same_delivery() -> None:
    """Identity is of the bytes, wherever in the input they stand."""
    first, again, other = (JsonLine(n, raw) for n, raw in ((1, b"a\n"), (9, b"a\n"), (2, b"b\n")))
    assert first.identity == again.identity != other.identity


def test_lines_and_records_agree() -> None:
    """Every line that is not blank is one record, with its line's number."""
    data = b"\n".join([b"{}", b"", b"x", b"  ", b"{}"])
    numbers = [record.number for record in read_json_lines(io.BytesIO(data)) if record]
    assert numbers == [1, 3, 5]
    assert len(list(read_lines(io.BytesIO(data), 100))) == 5
