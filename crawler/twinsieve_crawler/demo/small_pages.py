"""Pages that a news site has besides its stories: a home page, a live page, about pages, a photograph.

The live page is longer from its second visit on, as such pages are. The photograph has hardly any text.
"""

import json
from collections.abc import Iterable
from importlib.resources import files

from twinsieve_crawler.demo.articles import Article
from twinsieve_crawler.demo.page import DemoPage, content_type
from twinsieve_crawler.demo.templates import FRAMES, article_page
from twinsieve_crawler.demo.truth import Relation, Truth

LIVE = "/daily/live/storm.html"
FIRST_ENTRIES = 3
"""Entries on the live page at its first visit."""
HOME = (
    '<!DOCTYPE html><html><head><meta charset="utf-8"><title>twinsieve demo</title></head><body><ul>{links}</ul>'
    "</body></html>"
)


def small_pages(sites: Iterable[str]) -> list[DemoPage]:
    """Return the home page, which links to `sites`, and the other small pages."""
    texts = json.loads((files("twinsieve_crawler.demo") / "small_pages.json").read_text("utf-8"))
    return [
        _home(sites),
        _live(texts["live"]),
        _small("/daily/about.html", "daily", "关于我们", texts["about-zh"], "about page"),
        _small("/courier/about.html", "courier", "About the Courier", texts["about-en"], "about page"),
        _small("/daily/photo/1.html", "daily", "图集：月湖落日", texts["photo"], "a photograph, hardly any text"),
    ]


def _home(sites: Iterable[str]) -> DemoPage:
    links = [(f"/{site}/", FRAMES[site].site_name) for site in sites]
    links += [(LIVE, "暴雨直播"), ("/daily/photo/1.html", "图集"), ("/private/login", "登录")]
    html = HOME.format(links="".join(f'<li><a href="{path}">{label}</a></li>' for path, label in links))
    return DemoPage("/", (html.encode(),), "text/html; charset=utf-8", Truth("/", Relation.OWN, "list of sites"))


def _live(entries: list[str]) -> DemoPage:
    home = [("/daily/", "青河日报网首页")]
    visits = (entries[:FIRST_ENTRIES], entries)
    bodies = tuple(article_page("daily", _story("直播：青河市迎战暴雨", shown), home) for shown in visits)
    truth = Truth("zh-live", Relation.SAME_PAGE, "live page, grows between visits")
    return DemoPage(LIVE, bodies, content_type("daily"), truth)


def _small(path: str, site: str, title: str, text: str, note: str) -> DemoPage:
    body = article_page(site, _story(title, [text]), ())
    return DemoPage(path, (body,), content_type(site), Truth(path, Relation.OWN, note))


def _story(title: str, paragraphs: list[str]) -> Article:
    return Article(
        name="",
        lang="zh",
        title=title,
        headline="",
        section="",
        author="编辑部",
        date="2026-10-23",
        tags=(),
        paragraphs=tuple(paragraphs),
    )
