"""Tests for what a page states about itself."""

import json

import pytest

from dedup_service.core.extraction import extract
from tests.core.extraction.pages import news_page

ARTICLE = {
    "@type": "NewsArticle",
    "headline": "图书馆延长周末开放时间",
    "datePublished": "2024-03-09T08:00:00+08:00",
    "publisher": {"@type": "Organization", "name": "南山日报"},
    "keywords": ["图书馆", "阅读"],
}


def test_metadata_of_meta_elements() -> None:
    """Keywords, tags, site and date are read from <meta>, each term once."""
    head = """<meta name="keywords" content="图书馆,阅读，城市; 阅读"><meta property="article:tag" content="公共服务">
    <meta property="og:site_name" content="南山日报">
    <meta property="article:published_time" content="2024-3-9 08:00">"""
    extraction = extract(news_page(head=head))
    assert extraction.keywords == ("图书馆", "阅读", "城市")
    assert extraction.tags == ("公共服务",)
    assert (extraction.site_name, extraction.date) == ("南山日报", "2024-03-09")


@pytest.mark.parametrize(
    "data", [ARTICLE, [{"@type": "WebSite"}, ARTICLE], {"@graph": [{"@type": "WebSite"}, ARTICLE]}]
)
def test_metadata_of_json_ld(data: object) -> None:
    """JSON-LD is read as an object, a list or a graph."""
    head = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    extraction = extract(news_page(head=head))
    assert (extraction.site_name, extraction.date) == ("南山日报", "2024-03-09")
    assert extraction.keywords == ("图书馆", "阅读")


@pytest.mark.parametrize(
    "text",
    ["{", '{"datePublished": ', '{"datePublished": {"a": []}}', '["datePublished"]', "[" * 9000 + '"datePublished"'],
)
def test_broken_json_ld(text: str) -> None:
    """JSON-LD that cannot be parsed, or has an unexpected form, states nothing."""
    extraction = extract(news_page(head=f'<script type="application/ld+json">{text}</script>'))
    assert (extraction.date, extraction.problem) == (None, None)


@pytest.mark.parametrize("stated", ["yesterday", "2024-13-40", "9 March", "", "03/09/2024"])
def test_invalid_dates(stated: str) -> None:
    """A date that is not year, month and day in this order is ignored."""
    assert extract(news_page(head=f'<meta name="date" content="{stated}">')).date is None


@pytest.mark.parametrize(
    "head",
    [
        '<meta name="weibo: article:create_at" content="2024年3月5日 08:00">',
        '<meta itemprop="datePublished" content="2024年03月05日">',
        '<meta name="parsely-pub-date" content="2024-03-05T08:00:00Z">',
        '<meta name="pubdate" content="Tue, 05 Mar 2024 08:00:00 GMT">',
        '<meta name="date" content="soon"><meta name="citation_publication_date" content="2024/03/05">',
    ],
)
def test_forms_of_dates(head: str) -> None:
    """Under the names that sites use, in the forms of `core.dates`; what is no date is passed over."""
    assert extract(news_page(head=head)).date == "2024-03-05"


@pytest.mark.parametrize("date", ["9" * 10**6, "2024-03-" * 10**5, "99999-01-01", "-1", "0001-01-01", "\ud800", "🗓"])
def test_hostile_dates(date: str) -> None:
    """They are no date, and cost nothing else."""
    page = news_page(head=f'<meta name="date" content="{date}">').replace(
        "<h1>", f'<time datetime="{date}"></time><h1>'
    )
    extraction = extract(page)
    assert (extraction.date, extraction.problem) == (None, None)


def times(*elements: str) -> str | None:
    """The date of a page with these elements before its headline."""
    return extract(
        news_page().replace("<h1>", "".join(f"<time {element}>…</time>" for element in elements) + "<h1>")
    ).date


def test_dates_of_time_elements() -> None:
    """One that is stated to be the date of publication, or else the only one that there is."""
    assert times('datetime="2024-03-05T08:00"', 'datetime="2024-03-05"', "") == "2024-03-05"
    assert times('datetime="2024-03-05"', 'datetime="2024-03-06"', 'datetime="2024-03-05"') is None
    assert times('datetime="2024-03-01"', 'datetime="2024-03-05" itemprop="datePublished"') == "2024-03-05"
    assert times('datetime="2024-03-01"', 'pubdate datetime="2024-03-05"') == "2024-03-05"
    assert times('datetime="2024-03-05" itemprop="dateModified"') is None
    assert times('datetime="5 minutes ago"', 'datetime="2024-03-05"') == "2024-03-05"


def test_a_stated_date_comes_before_those_of_time_elements() -> None:
    """The elements may be those of other articles."""
    page = news_page(head='<meta property="article:published_time" content="2024-03-09">')
    assert extract(page.replace("<h1>", '<time datetime="2024-03-05">…</time><h1>')).date == "2024-03-09"


def test_tag_links() -> None:
    """The text of rel=tag links counts as tags."""
    page = news_page().replace("<h1>", '<a rel="tag" href="/t/1">志愿者</a><h1>')
    assert extract(page).tags == ("志愿者",)


def test_canonical_link_as_written() -> None:
    """rel=canonical is passed on unresolved."""
    assert extract(news_page(head='<link rel="Canonical" href=" /news/42 ">')).canonical_link == "/news/42"


def test_several_canonical_links() -> None:
    """A page that names two different canonical URLs has no canonical link."""
    head = '<link rel="canonical" href="/a"><link rel="canonical" href="/b">'
    assert extract(news_page(head=head)).canonical_link is None


@pytest.mark.parametrize(
    ("title", "head", "body", "expected"),
    [
        ("旧码头将重建_南山日报", "", "<h1>旧码头将重建</h1>", "旧码头将重建"),
        ("旧码头将重建-城市频道-南山日报", "", "", "旧码头将重建"),
        ("旧码头将重建 - 南山 - 要闻", '<meta property="og:title" content="旧码头将重建">', "", "旧码头将重建"),
        (
            "Old pier to be rebuilt | Harbour Post",
            '<meta property="og:site_name" content="Harbour Post">',
            "",
            "Old pier to be rebuilt",
        ),
        ("Old pier - why it matters", "", "<h1>Harbour Post</h1>", "Old pier - why it matters"),
        ("COVID-19 in the harbour", "", "", "COVID-19 in the harbour"),
        ("", "", "<h1>旧码头 将重建</h1>", "旧码头 将重建"),
        ("", '<meta property="og:title" content="旧码头将重建">', "<h1>南山日报</h1>", "旧码头将重建"),
        ("", "", "", ""),
    ],
)
def test_headline(title: str, head: str, body: str, expected: str) -> None:
    """The site's name is removed if the page shows that it is one; everything else stays."""
    html = f"<html><head><title>{title}</title>{head}</head><body>{body}<p>正文。</p></body></html>"
    assert extract(html).title == expected


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("zh-CN", "图书馆延长开放时间", "zh-CN"),
        ("en", "图书馆延长开放时间", "zh"),
        ("zh_TW", "圖書館延長開放時間", "zh-TW"),
        ("", "図書館は来月から開館時間を延長します", "ja"),
        ("zh", "도서관은 개관 시간을 연장합니다", "ko"),
        ("zh-CN", "The pier will be rebuilt before winter", None),
        ("en-GB", "The pier will be rebuilt before winter", "en-GB"),
        ("", "The pier will be rebuilt before winter", None),
        ("x<y", "12345 67890", None),
        ("en", "12345 67890", "en"),
    ],
)
def test_language(lang: str, text: str, expected: str | None) -> None:
    """The declared language holds unless the script contradicts it."""
    html = f'<html lang="{lang}"><head><title></title></head><body><div><p>{text}</p></div></body></html>'
    assert extract(html).lang == expected
