"""Reading a page: links that lead to pages of the site, and all text where it is asked for."""

from hypothesis import given
from hypothesis import strategies as st

from crawler.reading import Reading, read_page

HOME = "https://example.org/news/"


def read(
    html: str | bytes, url: str = HOME, *, domains: tuple[str, ...] = ("example.org",), whole: bool = False
) -> Reading:
    data = html if isinstance(html, bytes) else html.encode()
    return read_page(data, url, "text/html; charset=utf-8", domains, whole_text=whole)


def test_links_stay_on_the_site() -> None:
    """Subdomains belong to a host, other hosts do not, nor does a host that only ends alike."""
    html = """<a href="a">a</a> <a href="https://sport.example.org/b">b</a> <a href="https://example.com/c">c</a>
    <a href="https://notexample.org/d">d</a>"""
    assert read(html).links == ("https://example.org/news/a", "https://sport.example.org/b")


def test_a_host_with_a_port_is_a_host() -> None:
    """A site on localhost:8000 links to itself."""
    assert read('<a href="/a">a</a>', "http://127.0.0.1:8000/", domains=("127.0.0.1",)).links == (
        "http://127.0.0.1:8000/a",
    )


def test_what_is_no_page_is_not_followed() -> None:
    """Mail, scripts, images, documents, nonsense, and links that ask not to be followed."""
    html = """<a href="mailto:a@example.org">m</a> <a href="javascript:x()">j</a> <a href="/photo.JPG">p</a>
    <a href="/paper.pdf?v=2">d</a> <a href="http://[">n</a> <a href="/ad" rel="sponsored NoFollow">f</a>
    <a>no address</a>"""
    assert read(html).links == ()


def test_each_link_comes_once_and_without_its_fragment() -> None:
    """Page order is kept; the base element counts."""
    html = '<base href="/archive/"><a href="b#top">b</a><a href="a">a</a><map><area href="b"></map>'
    assert read(html).links == ("https://example.org/archive/b", "https://example.org/archive/a")


def test_all_text_is_read_where_it_is_asked_for() -> None:
    """Scripts and styles are no text; the page's encoding is found out."""
    head = "<html><head><title> 潮汐 表</title><style>p{}</style></head>"
    html = head + "<body><p>高潮<b>六点</b></p><script>x()</script></body></html>"
    reading = read_page(html.encode("gb18030"), HOME, "text/html; charset=gb18030", (), whole_text=True)
    assert (reading.title, reading.text) == ("潮汐 表", "潮汐 表 高潮 六点")


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    """Whatever a server sends, the spider goes on."""
    assert isinstance(read(b"<html>" + data, whole=True), Reading)
    assert isinstance(read(data, whole=True), Reading)
