"""HTML: any body is an extraction, and any extraction is a page that the log can hold."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.extraction import extract, to_page
from dedup_service.core.log_records import PageRecord, Source
from dedup_service.core.size_limits import EVENT_MESSAGE_BYTES
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.resources import build_fingerprinter
from tests.core.hostile import SENTENCE
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import hostile, mutated

ADDRESS = "http://a.test/1"
METADATA = (
    "<title>Pier - Harbour News</title>",
    '<meta property="og:title" content="Pier">',
    '<meta property="og:site_name" content="Harbour News">',
    '<meta name="keywords" content="pier, harbour">',
    '<meta property="article:published_time" content="2026-01-02T03:04:05Z">',
    '<link rel="canonical" href="/2">',
    '<script type="application/ld+json">{"@type": "NewsArticle", "headline": "Pier", "keywords": ["a", "b"]}</script>',
    '<html lang="zh-Hant">',
    '<base href="//[">',
)
TAGS = (
    *("div", "p", "span", "b", "i", "a", "ul", "li", "table", "tr", "td", "article", "nav", "h1", "br", "img", "video"),
    *("script", "style", "textarea", "title", "svg", "math", "template", "select", "form", "plaintext", "frameset"),
    *("blockquote", "pre", "code", "q", "del", "sub", "figure", "picture", "iframe", "noscript", "font", "center"),
)
PIECES = tuple(
    piece.encode()
    for piece in (
        *(f"<{tag}>" for tag in TAGS),
        *(f"</{tag}>" for tag in TAGS),
        *METADATA,
        *("<", ">", "<!--", "-->", "<![CDATA[", "]]>", "<?", "&", "&#0;", "&#xd800;", "&#x110000;", '"', "'"),
        *("=", "\0"),
        *("<div style=display:none>", "<a href=x rel=tag>", "<p class=comments>", '<time datetime="9999-99-99">'),
        "\u2028",
        "\ufeff",
        SENTENCE,
    )
)
ARTICLES = st.builds(
    lambda head, body: "".join((*head, "<body>", *body)).encode(),
    st.lists(st.sampled_from(METADATA), max_size=4),
    st.lists(
        st.sampled_from([f"<p>{SENTENCE * 3}</p>", "<h2>Pier</h2>", "<ul><li>a<li>b</ul>", "<table><tr><td>1</table>"]),
        min_size=1,
        max_size=6,
    ),
)
SMALL = st.one_of(
    mutated(ARTICLES, PIECES), st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=40).map(b"".join)
)
DECLARED = st.none() | st.sampled_from(["utf-8", "gbk", "text/html; charset=utf-16", "iso-2022-jp", "text/html"])


def check(html: bytes | str, declared: str | None = None) -> None:
    """What must hold for any body."""
    with within(html, declared):
        extraction = extract(html, declared_encoding=declared)
        page = to_page(extraction, ADDRESS)
        prepared = build_fingerprinter().prepare(page)
    assert extraction.text or extraction.problem, "an extraction without text says why"
    assert len(extraction.text) <= 4 * len(html) + 100
    assert extract(html, declared_encoding=declared) == extraction
    value = encode(PageRecord(Source("pages", 0, 0), prepared, "space"))
    assert len(value) < EVENT_MESSAGE_BYTES
    (record,) = decode(value)
    assert isinstance(record, PageRecord)
    assert record.prepared.evidence == prepared.evidence


@fuzzed(100)
@given(html=SMALL, declared=DECLARED)
def test_any_markup_is_an_extraction(html: bytes, declared: str | None) -> None:
    """Nothing raises, the text is bounded by the body, and the page goes through the log."""
    check(html, declared)


@fuzzed(20)
@given(
    html=hostile("html") | mutated(hostile("html").map(lambda html: html if isinstance(html, bytes) else html.encode()))
)
def test_hostile_units_in_any_combination_are_cheap(html: bytes | str) -> None:
    """Units that attack one step each, joined, nested and damaged."""
    check(html)


@fuzzed(10)
@given(json=hostile("json"))
def test_hostile_json_ld_is_cheap(json: str) -> None:
    """Units that attack the reading of what a page states about itself."""
    check(f'<title>Pier</title><script type="application/ld+json">{json}</script><p>{SENTENCE * 3}')


@fuzzed(20)
@given(html=st.binary(max_size=500) | st.text(max_size=200))
def test_any_bytes_or_text_are_an_extraction(html: bytes | str) -> None:
    """A body need not be HTML."""
    check(html)
