"""Tests for the conversion of an extraction to a page."""

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, extract, to_page
from tests.core.extraction.pages import news_page

URL = "https://www.example.com/news/42.html?utm_source=feed"


def test_page_carries_everything() -> None:
    """Title, text and metadata are in the page; the address is there as given, as canonical and as claimed."""
    page = to_page(extract(news_page(head='<link rel="canonical" href="/n/42">')), URL)
    assert (page.url, page.id, page.canonical_url) == (URL, URL, "https://www.example.com/news/42.html")
    assert page.claimed_url == "https://www.example.com/n/42"
    assert (page.title, page.lang, page.problem) == ("图书馆延长周末开放时间", "zh-CN", None)
    assert page.text


def test_name_of_the_caller() -> None:
    """The caller's name becomes the page's id, even an empty one."""
    assert to_page(Extraction(), URL, id="n42").id == "n42"
    assert to_page(Extraction(), URL, id="").id == ""


def test_link_to_the_home_page() -> None:
    """The pages of a site that names its home page as canonical everywhere stay different pages."""
    page = to_page(Extraction(canonical_link="https://www.example.com/"), URL)
    assert (page.canonical_url, page.claimed_url) == ("https://www.example.com/news/42.html", None)


def test_problem_is_passed_on() -> None:
    """A page without text has the problem of its extraction."""
    assert to_page(extract(b""), URL).problem == "empty page"


def test_invalid_address() -> None:
    """Only an invalid address raises."""
    with pytest.raises(RecordError):
        to_page(Extraction(), "not a URL")
