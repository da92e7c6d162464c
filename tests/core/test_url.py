"""Tests for canonical URLs, and for the addresses that pages may claim."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.url import canonicalise, host_hash, page_addresses, url_and_host_hash, url_hash

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


def test_hosts_are_named_as_in_browsers() -> None:
    """`faß.de` is not `fass.de` (UTS 46, not transitional); case, width and full stops do not count."""
    assert canonicalise("http://faß.de/") == "http://xn--fa-hia.de/"
    assert canonicalise("http://fass.de/") == "http://fass.de/"
    assert canonicalise("http://FAẞ。ＤＥ/") == canonicalise("http://xn--fa-hia.de/") == canonicalise("http://faß.de./")
    assert canonicalise("http://☃.example/") == "http://xn--n3h.example/"


@pytest.mark.parametrize("address", ["https://example.com/{}", "https://example.com/view?q={}", "https://{}.example/"])
def test_letters_that_older_names_confused(address: str) -> None:
    """`faß` and `fass` are two addresses in a host, a path and a query."""
    assert canonicalise(address.format("faß")) != canonicalise(address.format("fass"))


TOKEN = "6f1e8a0c4b7d4f6e9a3c2b1d0e5f7a89"


@pytest.mark.parametrize(
    "query",
    [
        "utm_source=weibo", "UTM_Campaign=x", "fbclid=1", "gclid=1", "%67clid=1", "mtm_campaign=spring", "mkt_tok=NzEx",
        "_ga=2.104210983.1711.200-99.2", "_gl=1*1abc*_ga*MTA0", "igsh=MzRlODBiNWFlZA%3D%3D",
        "pk_campaign=spring", "pk_kwd=shoes", "pk_source=mail", "pk_campaign=", "itm_source=teaser&itm_campaign=home",
        "_hsenc=p2ANqtz&_hsmi=9", "hsa_acc=12&hsa_cam=3", "oly_enc_id=12", "mc_cid=8f0e22a1b7&mc_eid=00aa11bb22",
        "vero_id=7&vero_conv=x",
        "spm=a2c4g.11186623.0.0", "scm=20140722.184.2.173", "spm=1001.2101.3001.6650.1", "spm_id_from=333.337",
        f"vd_source={TOKEN}", "share_source=copy_web&share_medium=android",
        "hmsr=toutiao", "hmci=3&hmkw=4&hmsr=toutiao&hmpl=1&hmcu=2", "wechat_redirect", f"nsukey={TOKEN}%2B%2B",
        "PHPSESSID=9", "jsessionid=0A1B", "ASPSESSIONIDQABCDEFG=1", f"sessionId={TOKEN}", "cfid=12&cftoken=77412903",
        "CFTOKEN=77412903&CFID=12",
    ],
)  # fmt: skip
def test_parameters_that_name_no_page(query: str) -> None:
    """Campaigns, clicks and sessions are removed; the page's own parameters stay."""
    assert canonicalise(f"https://example.com/view?{query}&id=7") == "https://example.com/view?id=7"
    assert canonicalise(f"https://example.com/view?id=7&{query}") == "https://example.com/view?id=7"


@pytest.mark.parametrize(
    "query",
    [
        "cid=3", "from=home", "id=7", "keyword=a", "ref=12", "source=5", "uid=9", "spmid=4", "s_cid=news",
        "sessionId=101", "sessionid=keynote-monday-2024-on-a-vendor-i-know", "sessionid=507f1f77bcf86cd799439011",
        "sessionid=9b2e3f90-1d6a-4c1e-8f53-0a1b2c3d4e5f",
        "pk_id=1", "pk_source=12", "pk_content=507f1f77bcf86cd799439011", "mtm_id=3",
        "itm_no=4", "itm_source=5", "itm_id=5", "oly_id=1", "vero_id=7", "hsa_id=1", "utm_zone=33", "utm_x=1&utm_y=2",
        "scm=git", "scm=1.2", "spm=12", "spm=1.2.3", "cfid=12", "cftoken=12", "hmci=3", "hmpl=3", "hmsr=12",
        "mc_cid=12", "mc_cid=1000000001", "nsukey=1", "_gl=en", "_ga=1", "igsh=12", "vd_source=1", "share_source=1",
    ],
)  # fmt: skip
def test_parameters_that_may_name_a_page(query: str) -> None:
    """A parameter that names a page on some site stays."""
    assert canonicalise(f"https://example.com/view?{query}") == f"https://example.com/view?{query}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?sessionId=101", "?sessionId=102"),
        ("?pk_id=1", "?pk_id=2"),
        ("?itm_no=1", "?itm_no=2"),
        ("?scm=git", "?scm=svn"),
        ("?cfid=12", "?cfid=13"),
        ("#!/a/1", "#!/a/2"),
        ("#/a/1", "#/a/2"),
        ("#!/a", ""),
    ],
)
def test_two_pages_have_two_addresses(one: str, other: str) -> None:
    """Pages that differ in an item, a session of a conference or a route of an application are not confused."""
    assert canonicalise(f"https://example.com/view{one}") != canonicalise(f"https://example.com/view{other}")


@pytest.mark.parametrize(
    ("fragment", "kept"),
    [
        ("#top", ""), ("#", ""), ("#!", ""), ("#/", ""), ("#!/", ""), ("#:~:text=a", ""), ("#wechat_redirect", ""),
        ("#!/a/1", "#!/a/1"), ("#/a/1?tab=2", "#/a/1?tab=2"), ("#!id=4", "#!id=4"), ("#/中%2f", "#/%E4%B8%AD%2F"),
    ],
)  # fmt: skip
def test_fragments(fragment: str, kept: str) -> None:
    """A fragment is a place in the page and is removed, but the route of a single-page application stays."""
    assert canonicalise(f"https://example.com/a?b=1{fragment}") == f"https://example.com/a?b=1{kept}"


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
    ("link", "claimed"),
    [
        ("https://www.example.com/news/42", "https://www.example.com/news/42"),
        ("/archive/42.html", "https://www.example.com/archive/42.html"),
        ("43.html?utm_source=x", "https://www.example.com/news/43.html"),
        ("http://example.com/news/42.html", "http://example.com/news/42.html"),
        ("https://m.example.com/42", "https://m.example.com/42"),
    ],
)
def test_links_that_are_claims(link: str, claimed: str) -> None:
    """A link on the same host, apart from a leading www. or m., is a claim; the page's own address stays."""
    assert page_addresses(PAGE, link) == (PAGE, claimed)


@pytest.mark.parametrize(
    "link",
    [None, "", "  ", "https://www.example.com/", "/", "/index.html", "https://example.com", "https://other.com/news/42.html",
     "https://cdn.example.com/42", "https://www.example.com:8443/42", "mailto:a@example.com", "http://[broken",
     PAGE, "42.html?utm_source=x#top"],
)  # fmt: skip
def test_links_that_are_no_claims(link: str | None) -> None:
    """With another host, a home page, an invalid link or its own address, a page claims nothing."""
    assert page_addresses(PAGE, link) == (PAGE, None)


def test_home_page_of_itself() -> None:
    """A home page may name a home page."""
    home = "http://www.example.com/"
    assert page_addresses("http://example.com/index.html", home).claimed_url == home


def test_a_route_is_no_home_page() -> None:
    """A page of an application on the home page may be claimed, and may not claim the home page."""
    article, home = "http://example.com/#!/a/1", "http://example.com/"
    assert page_addresses("http://example.com/a/1", article).claimed_url == article
    assert page_addresses(article, home).claimed_url is None


def test_host_of_two_labels_keeps_its_name() -> None:
    """m.com is a site, not the mobile form of com."""
    assert page_addresses("http://m.com/a", "http://www.com/b").claimed_url is None


HOSTS = st.text(alphabet=string.ascii_letters + string.digits + "-.:中éßẞ。☃[]@%", max_size=20)
PATHS = st.text(alphabet="abé中ß%;=&?/.#!:@+ 2fF\\\t", max_size=40)
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(
            ["id", "scm", "cfid", "cftoken", "pk_source", "hmci", "hmsr", "%63fid", "CFTOKEN", "gclid", ""]
        ),
        st.sampled_from(["", "1", "git", "a.b.c.d", "%61.b.c.d", "a+b", "a&b", TOKEN, "=", "é"]),
    ),
    max_size=6,
).map(lambda pairs: "?" + "&".join(f"{name}={value}" for name, value in pairs))


@given(
    scheme=st.sampled_from(["http://", "https://", "HTTP://"]),
    host=HOSTS | st.just("example.com"),
    path=PATHS | QUERIES | PATHS.map("#!".__add__) | PATHS.map("#/".__add__),
)
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
    """Whatever a page names as canonical, its own address stays, and what it claims is on its host."""
    own, claimed = page_addresses(PAGE, link)
    assert own == PAGE
    assert claimed is None or claimed.split("/")[2] in {"www.example.com", "example.com", "m.example.com"}


@pytest.mark.parametrize(
    "url", ["http://a.test/b", "https://ä.test:81/é?x=/", "a://", "", "://x", "http://\ud800.test/a//b", "x/y://z"]
)
def test_both_hashes_at_once_are_those_of_each(url: str) -> None:
    """The hashes of a URL and its host are the same together as alone, whatever the URL is."""
    own, host = url_and_host_hash(url)
    assert (own, host >> 32) == (url_hash(url), host_hash(url))
