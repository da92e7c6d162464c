"""Tests for HTML → extraction: what a reader would call the article, or the reason why there is none."""

import re

import pytest

from dedup_service.core.extraction import Extraction, extract
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from tests.core.extraction.pages import PARAGRAPHS_EN, PARAGRAPHS_ZH, RELATED_ZH, news_page


def test_chinese_article() -> None:
    """A news page gives its article, headline and language, without menu, scripts and links."""
    extraction = extract(news_page())
    assert extraction.text == "\n".join(PARAGRAPHS_ZH)
    assert extraction.title == "图书馆延长周末开放时间"
    assert extraction.lang == "zh-CN"
    assert extraction.problem is None


def test_english_article() -> None:
    """The paragraphs of an English page are on separate lines."""
    page = news_page(PARAGRAPHS_EN, title="Old pier to be rebuilt", site="Harbour Post", related=(), lang="en")
    extraction = extract(page.replace("城市", "Town"))
    assert extraction.text.splitlines()[-3:] == list(PARAGRAPHS_EN)
    assert extraction.lang == "en"


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_bytes_are_text_under_their_encoding(encoding: str) -> None:
    """The same page as bytes gives the same extraction."""
    assert extract(news_page().encode(encoding), declared_encoding=encoding) == extract(news_page())


def test_big5_page_that_declares_itself() -> None:
    """A traditional page in Big5 is read by its own <meta>."""
    text = "圖書館宣布下月起延長週末開放時間，讀者可以在館內停留到晚上十點，以方便白天上班的市民借閱圖書。"
    page = news_page((text, text[::-1]), title="圖書館公告", site="南山報", related=(), head='<meta charset="big5">')
    page = (
        page.replace("首页", "首頁").replace("体育", "體育").replace("脚", "腳").replace("关", "關").replace("于", "於")
    )
    page = page.replace("们", "們").replace("联", "聯").replace("阅读", "閱讀").replace("相關", "相關")
    assert text in extract(page.encode("big5hkscs")).text


def test_encoding_declaration_inside_text() -> None:
    """A str with an XML encoding declaration can be parsed."""
    page = '<?xml version="1.0" encoding="gbk"?>' + news_page()
    assert PARAGRAPHS_ZH[0] in extract(page).text


def test_nul_and_control_characters() -> None:
    """NUL bytes and other control characters inside a page are removed, and nothing else is lost."""
    page = news_page().replace("图书馆", "图\x00书\x01馆\x0b").replace("<p>", "<p>&#0;&#x1;&#65535;&#31\ufffe")
    assert PARAGRAPHS_ZH[1] in extract(page.encode()).text


def test_copies_in_different_frames_have_the_same_text() -> None:
    """An article is extracted the same beside different lists of links."""
    other = news_page(related=("秋季菜价平稳", "环城步道全线贯通", "新校区下月启用"), site="北河晚报")
    assert extract(other).text == extract(news_page()).text


def test_links_inside_sentences_stay() -> None:
    """An article that links some of its words keeps them."""
    linked = (
        PARAGRAPHS_ZH[1]
        .replace("问卷调查", '<a href="/survey">问卷调查</a>')
        .replace("馆长", '<a href="/who">馆长</a>')
    )
    assert PARAGRAPHS_ZH[1] in extract(news_page((PARAGRAPHS_ZH[0], linked))).text


def test_share_of_main_text() -> None:
    """Of the text that a reader sees: less in a larger frame, everything in a page without one."""
    framed, more = extract(news_page()), extract(news_page(related=RELATED_ZH * 3))
    assert framed.text == more.text
    assert framed.text_percent is not None
    assert more.text_percent is not None
    assert 20 < more.text_percent < framed.text_percent < 95
    assert framed.text_percent == pytest.approx(100 * len(framed.text) / len(seen(news_page())), abs=3)
    alone = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS_ZH)
    assert extract(f"<html><body>{alone}</body></html>").text_percent == 100
    assert extract("<p></p>").text_percent is None


def seen(html: str) -> str:
    """All text of a body, without white space."""
    body = re.sub(r"<script.*?</script>|<head.*?</head>", "", html, flags=re.DOTALL)
    return "".join(re.sub(r"<[^>]*>", " ", body).split())


def test_page_of_links_alone() -> None:
    """The text of a page that is only a list of links is that list, rather than nothing."""
    items = "".join(
        f'<li><a href="/{n}">{title}，以及更多的本地消息</a></li>' for n, title in enumerate(RELATED_ZH * 3)
    )
    page = f"<html><head><title>本地消息</title></head><body><div><ul>{items}</ul></div></body></html>"
    assert RELATED_ZH[2] in extract(page).text


def test_topics_of_a_forum() -> None:
    """The text of a page of linked titles is the titles, not what stands between them."""
    titles = [f"{title}，第{n}次讨论" for n in range(8) for title in RELATED_ZH]
    rows = "".join(f'<div><p><a href="/{title}">{title}</a></p><p>7 回复 06-18</p></div>' for title in titles)
    text = extract(f'<html><head><title>本地</title></head><body><div id="content">{rows}</div></body></html>').text
    assert all(title in text for title in titles)


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        (b"", "empty page"),
        ("", "empty page"),
        ("  \n\t ", "empty page"),
        (b"\x00\x00\x00", "not HTML: binary data"),
        ("just words, no markup", "not HTML: no markup"),
        (b'{"id": 7}', "not HTML: no markup"),
        (b"%PDF-1.7 <p>text</p>", "not HTML: PDF data"),
        (b"\x89PNG\r\n\x1a\n<p>", "not HTML: PNG data"),
        (b"\x1f\x8b\x08\x00 <", "not HTML: gzip data"),
        ("<html><head><title>t</title></head><body></body></html>", "no main text"),
        ("<html><body><script>var a = 1;</script><img src=a.png></body></html>", "no main text"),
        ("<!-- nothing -->", "empty page"),
    ],
)
def test_pages_without_text(html: bytes | str, problem: str) -> None:
    """A page without text gives the reason instead of raising."""
    extraction = extract(html)
    assert (extraction.text, extraction.problem) == ("", problem)


def test_page_without_text_keeps_its_title() -> None:
    """The statements of the head are kept if the body has no text."""
    html = "<html><head><title>只有标题</title><meta name=keywords content=甲,乙></head><body></body></html>"
    assert extract(html) == Extraction(title="只有标题", keywords=("甲", "乙"), lang="zh", problem="no main text")


def test_page_above_the_limit() -> None:
    """It is not parsed; both numbers are named."""
    extraction = extract(b"<p>" + b"a" * MAX_PAGE_SIZE)
    assert extraction.problem == f"page too large: {MAX_PAGE_SIZE + 3} bytes, limit {MAX_PAGE_SIZE}"
    assert extract("<p>" + "a" * 100, max_bytes=102).problem == "page too large: 103 characters, limit 102"


def test_deep_nesting() -> None:
    """Tens of thousands of nested elements do not raise RecursionError: the page has no main text, and says so."""
    for tag in ("div", "span", "ul><li", "blockquote", "table><tr><td"):
        html = "<html><body>" + f"<{tag}>" * 20_000 + PARAGRAPHS_ZH[0] + "</body></html>"
        assert (extract(html).problem, extract(html).text) == ("no main text", "")


def test_more_elements_than_an_article_has() -> None:
    """All text of a huge table is used, without trafilatura, which would take seconds."""
    rows = "".join(f"<tr><td>第{n}行</td><td>{n * 7}</td></tr>" for n in range(10_000))
    lines = extract(f"<html><body><table>{rows}</table></body></html>").text.splitlines()
    assert lines[:2] == ["第0行", "0"]
    assert len(lines) == 20_000


def test_broken_markup() -> None:
    """Unclosed and misplaced tags do not lose the article."""
    page = news_page().replace("</p>", "").replace("</div>", "").replace("</body></html>", "")
    assert PARAGRAPHS_ZH[0] in extract(page).text


def test_page_inside_a_form() -> None:
    """A page inside one form, as some frameworks write it, keeps its text."""
    page = news_page().replace("<body>", '<body><form id="f">').replace("</body>", "</form></body>")
    assert PARAGRAPHS_ZH[0] in extract(page).text
