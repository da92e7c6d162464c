"""Tests for canonical URLs, and for the rel=canonical links that are accepted."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.url import accepted_canonical_url, canonicalise

PAGE = "https://www.example.com/news/42.html"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTP://News.Example.COM", "http://news.example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("http://example.com./a#part", "http://example.com/a"),
        ("http://user:secret@example.com/a", "http://example.com/a"),
        ("http://例え.jp/记录", "http://xn--r8jz45g.jp/%E8%AE%B0%E5%BD%95"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/%7ejo/%e4%b8%ad", "http://example.com/~jo/%E4%B8%AD"),
        ("http://example.com/a?b=2&a=1", "http://example.com/a?a=1&b=2"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        (" https://example.com/a ", "https://example.com/a"),
    ],
)
def test_spellings_of_one_address(url: str, canonical: str) -> None:
    """Case, default ports, dot segments, escapes, query order and fragments do not make another page."""
    assert canonicalise(url) == canonical


@pytest.mark.parametrize(
    "query",
    [
        "utm_source=weibo",
        "UTM_Campaign=x",
        "spm=a2.b3",
        "fbclid=1",
        "gclid=1",
        "hmsr=toutiao",
        "PHPSESSID=9",
        "vd_source=1",
    ],
)
def test_parameters_that_name_no_page(query: str) -> None:
    """Campaigns, clicks and sessions are removed; the page's own parameters stay."""
    assert canonicalise(f"https://example.com/view?{query}&id=7") == "https://example.com/view?id=7"


@pytest.mark.parametrize("query", ["cid=3", "from=home", "id=7", "keyword=a", "ref=12", "source=5", "uid=9", "spmid=4"])
def test_parameters_that_may_name_a_page(query: str) -> None:
    """A parameter that names a page on some site stays."""
    assert canonicalise(f"https://example.com/view?{query}") == f"https://example.com/view?{query}"


def test_session_in_the_path() -> None:
    """A Java session id in the path is removed."""
    assert canonicalise("http://example.com/a;jsessionid=0A1B?id=1") == "http://example.com/a?id=1"


@pytest.mark.parametrize(
    "url",
    ["", "example.com/a", "ftp://example.com/", "http://", "http:///a", "http://a:99999/", "http://a b/", "http://[::1",
     "javascript:void(0)", "http://../", "https://example.com/" + "a" * 9000],
)  # fmt: skip
def test_invalid_addresses(url: str) -> None:
    """Anything but a Web address is a record error, which shows the address and says what to give."""
    with pytest.raises(RecordError, match="give an absolute http or https URL"):
        canonicalise(url)


@pytest.mark.parametrize(
    ("link", "accepted"),
    [
        ("https://www.example.com/news/42", "https://www.example.com/news/42"),
        ("/archive/42.html", "https://www.example.com/archive/42.html"),
        ("43.html?utm_source=x", "https://www.example.com/news/43.html"),
        ("http://example.com/news/42.html", "http://example.com/news/42.html"),
        ("https://m.example.com/42", "https://m.example.com/42"),
    ],
)
def test_accepted_links(link: str, accepted: str) -> None:
    """A link on the same host, apart from a leading www. or m., is the page's canonical URL."""
    assert accepted_canonical_url(PAGE, link) == accepted


@pytest.mark.parametrize(
    "link",
    [None, "", "  ", "https://www.example.com/", "/", "/index.html", "https://example.com", "https://other.com/news/42.html",
     "https://cdn.example.com/42", "https://www.example.com:8443/42", "mailto:a@example.com", "http://[broken"],
)  # fmt: skip
def test_rejected_links(link: str | None) -> None:
    """With another host, a home page or an invalid link, the page keeps the address of its fetch."""
    assert accepted_canonical_url(PAGE, link) == PAGE


def test_home_page_of_itself() -> None:
    """A home page may name a home page."""
    assert (
        accepted_canonical_url("http://example.com/index.html", "http://www.example.com/") == "http://www.example.com/"
    )


def test_host_of_two_labels_keeps_its_name() -> None:
    """m.com is a site, not the mobile form of com."""
    assert accepted_canonical_url("http://m.com/a", "http://www.com/b") == "http://m.com/a"


HOSTS = st.text(alphabet=string.ascii_letters + string.digits + "-.:中é。[]@%", max_size=20)
PATHS = st.text(alphabet="abé中%;=&?/.#:@+ 2fF\\\t", max_size=40)


@given(scheme=st.sampled_from(["http://", "https://", "HTTP://"]), host=HOSTS | st.just("example.com"), path=PATHS)
def test_canonicalise_is_idempotent(scheme: str, host: str, path: str) -> None:
    """The canonical form of a canonical form is itself; anything but a URL is a record error."""
    try:
        canonical = canonicalise(f"{scheme}{host}/{path}")
    except RecordError:
        return
    assert canonicalise(canonical) == canonical


@given(address=st.from_regex(r"s?://[a-z0-9.-]{1,12}(/[a-zA-Z0-9_.-]{0,8}){0,4}", fullmatch=True))
def test_the_shortcut_for_plain_addresses_changes_nothing(address: str) -> None:
    """A URL that is returned untouched would have come out of the normalisation the same."""
    try:
        expected = canonicalise(f"HTTP{address}")
    except RecordError:
        with pytest.raises(RecordError):
            canonicalise(f"http{address}")
        return
    assert canonicalise(f"http{address}") == expected


@given(link=st.text(max_size=60) | PATHS)
def test_no_link_raises(link: str) -> None:
    """Whatever a page names as canonical, its canonical URL is on its host."""
    assert accepted_canonical_url(PAGE, link).split("/")[2] in {"www.example.com", "example.com", "m.example.com"}
