"""Items and responses as the JSON that `filter` and the service read."""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Field, Item
from scrapy.http import HtmlResponse

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.interfaces.scrapy.page_values import (
    fields_of_item,
    fields_of_page,
    fields_of_response,
    is_page,
    page_of_item,
    page_value,
)
from dedup_service.interfaces.scrapy.settings import ItemFields
from dedup_service.runtime.kafka.messages.page import PageMessage

URL = "https://a.example/x"


@dataclass
class Story:
    url: str
    text: str
    price: Decimal = Decimal("9.50")
    seen: dt.date = dt.date(2026, 1, 2)


class Declared(Item):
    url = Field()
    html = Field()


def no_extraction(html: bytes | str, declared: str | None) -> Extraction:
    return Extraction(text=str(html))


def as_read(value: bytes) -> Page:
    """The page that the service reads from a message."""
    return PageMessage("pages", 0, 0, value).page(no_extraction)


@pytest.mark.parametrize(
    "item",
    [{"url": URL, "text": ""}, {"url": URL, "html": b"<p>"}, Story(URL, "t"), Declared(url=URL, html="<p>")],
)
def test_items_of_every_type_can_be_pages(item: Any) -> None:
    """A URL with text or HTML is a page."""
    assert is_page(item)
    assert as_read(page_value(fields_of_item(item)).value).url == URL


def test_an_item_is_judged_by_the_fields_that_are_named_and_by_those_of_a_line() -> None:
    """Its own `text` is another field then; `id` and metadata count, and one of another type costs nothing."""
    names = ItemFields("body", title="head", url="link")
    item = {
        "link": "../b",
        "head": "A title",
        "body": "The text.\ud800",
        "text": "no",
        "id": 7,
        "tags": "a",
        "x": object(),
    }
    value = page_of_item(item, names, HtmlResponse("https://a.example/c/d"), iter(())).value
    page = as_read(value)
    assert (page.url, page.title, page.text) == ("https://a.example/b", "A title", "The text.?")
    assert (page.id, page.tags) == ("7", ())


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"url": URL}, "`body` .TWINSIEVE_ITEM_TEXT. is missing"),
        (Declared(url=URL), "`body` .TWINSIEVE_ITEM_TEXT. is missing"),
        ({"url": URL, "body": None}, "holds NoneType, not text"),
        ({"url": URL, "body": b"text"}, "holds bytes, not text"),
        ({"url": " ", "body": "text"}, "`url` has no address"),
        ({"url": 7, "body": "text"}, "`url` has no address"),
        ({"body": "text"}, "`url` has no address"),
        (7, "no item"),
    ],
)
def test_an_item_that_cannot_be_judged_says_what_it_lacks(item: Any, problem: str) -> None:
    """An address, or a text in the field that is named."""
    with pytest.raises(RecordError, match=problem):
        page_of_item(item, ItemFields("body"), None, iter(()))


@pytest.mark.parametrize(
    "item",
    [{"url": URL}, {"text": "t"}, {"url": " ", "text": "t"}, {"url": None, "text": "t"}, {"url": URL, "text": 5}, 7],
)
def test_other_items_are_not_pages(item: Any) -> None:
    """They have no URL, or neither text nor HTML."""
    assert not is_page(item)


def test_other_fields_pass_through() -> None:
    """Dates, decimals and nested values become JSON; a null in an unknown field stays."""
    item = {**fields_of_item(Story(URL, "t")), "neighbours": {"left": [1, None]}, "rank": None, "title": None}
    value = json.loads(page_value(item).value)
    assert value == {
        "url": URL, "text": "t", "price": "9.50", "seen": "2026-01-02", "neighbours": {"left": [1, None]}, "rank": None,
    }  # fmt: skip


@pytest.mark.parametrize("inside", [lambda item: item, lambda item: [{"parent": item}]])
def test_an_item_that_contains_itself_is_published_without_that_field(inside: Callable[[Any], Any]) -> None:
    """Such a field counts as one that JSON cannot hold."""
    item: dict[str, Any] = {"url": URL, "text": "t", "rank": 1}
    item["tree"] = inside(item)
    page = page_value(fields_of_item(item))
    assert (json.loads(page.value), page.left_out) == ({"url": URL, "text": "t", "rank": 1}, ("tree",))


def test_an_item_that_contains_itself_keeps_items_in_its_other_fields() -> None:
    """They are converted as in any item."""
    item: dict[str, Any] = {"url": URL, "text": "t", "inner": Declared(url=URL)}
    item["tree"] = [item]
    page = page_value(fields_of_item(item))
    assert (json.loads(page.value)["inner"], page.left_out) == ({"url": URL}, ("tree",))


def test_a_field_that_filter_would_refuse_is_moved_under_item() -> None:
    """With `tags` that are no list, or a list as `id`, the page is not refused and no data are lost."""
    sent = page_value({"url": URL, "text": "t", "id": [5], "tags": "a, b", "item": {"shop": 1}})
    value = json.loads(sent.value)
    assert value == {"url": URL, "text": "t", "item": {"shop": 1, "id": [5], "tags": "a, b"}}
    assert as_read(sent.value).id == URL


def test_what_json_cannot_hold_is_left_out_and_named() -> None:
    """Only that field is; a lone surrogate becomes a question mark."""
    sent = page_value({"url": URL, "text": "half \ud83d", "parser": object()})
    assert (json.loads(sent.value), sent.left_out) == ({"url": URL, "text": "half ?"}, ("parser",))


def test_the_canonical_url_is_the_key() -> None:
    """The key is the canonical form of the page's own address, whatever address it claims."""
    mobile = "https://m.a.example/x"
    assert page_value({"url": f"{URL}?utm_source=a", "text": "t"}).canonical_url == URL
    assert page_value({"url": mobile, "canonical_url": URL, "text": "t"}).canonical_url == mobile


@pytest.mark.parametrize("claimed", [None, URL])
def test_an_extracted_page_arrives_unchanged(claimed: str | None) -> None:
    """Everything that extraction found arrives, including the address that the page claims."""
    mobile = "https://m.a.example/x"
    page = Page(
        id="7", url=mobile, canonical_url=mobile, claimed_url=claimed, title="T", text="t", lang="en", keywords=("k",),
        tags=("a", "b"), references=("r",), site_name="S", date="2026-01-02",
        text_percent=0,
    )  # fmt: skip
    assert as_read(page_value(fields_of_page(page)).value) == page


def test_a_response_arrives_as_its_document() -> None:
    """It is decoded as extraction would decode it, whatever the server declared."""
    body = "<html><body><p>潮汐表</p></body></html>".encode("gb18030")
    response = HtmlResponse(URL, body=body, headers={"Content-Type": "text/html; charset=gb18030"})
    page = as_read(page_value(fields_of_response(response)).value)
    assert page.text == "<html><body><p>潮汐表</p></body></html>"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5) | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(
    ["id", "title", "tags", "keywords", "date", "text_percent", "canonical_url", "item", "html"]
) | st.text(max_size=5)


@given(st.dictionaries(names, anything, max_size=6), st.text(min_size=1), st.text())
def test_the_service_can_read_any_item(fields: dict[str, Any], url: str, text: str) -> None:
    """Arbitrary fields never make a message that the service refuses."""
    item = {**fields, "url": url, "text": text}
    if is_page(item):
        as_read(page_value(fields_of_item(item)).value)
