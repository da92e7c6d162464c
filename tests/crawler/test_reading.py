"""Reading a page: links to pages of the site, and all text on request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from twinsieve_crawler.reading import MAX_LINKS, Reading, read_page

HOME = "https://example.org/news/"


def read(
    html: str | bytes, url: str = HOME, *, domains: tuple[str, ...] = ("example.org",), whole_text: bool = False
) -> Reading:
    data = html if isinstance(html, bytes) else html.encode()
    return read_page(data, url, "text/html; charset=utf-8", domains, whole_text=whole_text)


def test_links_stay_on_the_site() -> None:
    """Subdomains belong to a host; other hosts do not, even if their names end the same."""
    html = """<a href="a">a</a> <a href="https://sport.example.org/b">b</a> <a href="https://example.com/c">c</a>
    <a href="https://notexample.org/d">d</a>"""
    assert read(html).links == ("https://example.org/news/a", "https://sport.example.org/b")


def test_a_host_with_a_port_is_the_same_host() -> None:
    """A site on port 8000 can link to itself."""
    assert read('<a href="/a">a</a>', "http://127.0.0.1:8000/", domains=("127.0.0.1",)).links == (
        "http://127.0.0.1:8000/a",
    )


def test_links_to_other_things_than_pages_are_not_followed() -> None:
    """Mail, scripts, images, documents, invalid URLs and nofollow links are left out."""
    html = """<a href="mailto:a@example.org">m</a> <a href="javascript:x()">j</a> <a href="/photo.JPG">p</a>
    <a href="/paper.pdf?v=2">d</a> <a href="http://[">n</a> <a href="/ad" rel="sponsored NoFollow">f</a>
    <a>no address</a>"""
    assert read(html).links == ()


def test_each_link_comes_once_and_without_its_fragment() -> None:
    """Page order is kept, and the base element is respected."""
    html = '<base href="/archive/"><a href="b#top">b</a><a href="a">a</a><map><area href="b"></map>'
    assert read(html).links == ("https://example.org/archive/b", "https://example.org/archive/a")


def test_a_page_that_begins_as_xml_is_read() -> None:
    """XHTML pages declare their encoding before the document."""
    html = '<?xml version="1.0" encoding="UTF-8"?><html lang="de"><a href="a">Gezeiten</a></html>'
    reading = read(html, whole_text=True)
    assert (reading.links, reading.text) == (("https://example.org/news/a",), "Gezeiten")


@pytest.mark.parametrize("port", ["99999", "x", "-1", "²"])
def test_a_link_that_is_no_request_is_left_out(port: str) -> None:
    """Making a request of it would raise, and the links behind it would be lost."""
    links = read(f'<a href="a">a</a><a href="//example.org:{port}/">b</a><a href="c">c</a>').links
    assert [Request(link).url for link in links] == ["https://example.org/news/a", "https://example.org/news/c"]


@pytest.mark.parametrize("base", ["http://[", "//[::1", "http://a]b/", "//example.org:99999/"])
def test_a_base_that_is_no_url_is_ignored(base: str) -> None:
    """Links are then relative to the page, as in a browser."""
    assert read(f'<base href="{base}"><a href="a">a</a>').links == ("https://example.org/news/a",)


def test_links_of_a_page_are_limited() -> None:
    """The first ones are read, and the reading says that there are more."""
    reading = read("".join(f'<a href="{number}">a</a>' for number in range(MAX_LINKS + 1)))
    assert reading.links[-1] == f"{HOME}{MAX_LINKS - 1}"
    assert len(reading.links) == MAX_LINKS
    assert reading.problem is not None
    assert "10,000" in reading.problem


def test_all_text_is_read_on_request() -> None:
    """Scripts and styles are left out, and the encoding of the page is used."""
    head = "<html><head><title> 潮汐 表</title><style>p{}</style></head>"
    html = head + "<body><p>高潮<b>六点</b></p><script>x()</script></body></html>"
    reading = read_page(html.encode("gb18030"), HOME, "text/html; charset=gb18030", (), whole_text=True)
    assert (reading.title, reading.text) == ("潮汐 表", "潮汐 表 高潮 六点")


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    """Whatever a server sends, also as the base of its links, the spider continues."""
    assert isinstance(read(b'<base href="http://' + data + b'"><a href="//' + data + b'">'), Reading)
    assert isinstance(read(b"<html>" + data, whole_text=True), Reading)
    assert isinstance(read(data, whole_text=True), Reading)
