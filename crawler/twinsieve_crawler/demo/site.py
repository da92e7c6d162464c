"""Builds the demo site: every path, its bytes, and the truth about it.

The five sites have five path prefixes on one host, so that one crawl from `/` visits them all.
Invariants: every build has the same bytes; every page but `/private/` can be reached from `/` by links and
canonical links; no link points to a page that does not exist.

Which site publishes which story, and with which edits: the truth of the demo, as data.

An entry of `REPOSTS` reads: this site publishes this story after these edits.

Pages of two daily series: the same frame and phrases, with other days and other numbers.

They look alike but are not copies of each other, so each must be kept.

Pages that a news site has besides its stories: a home page, a live page, about pages, a photograph.

The live page is longer from its second visit on, as such pages are. The photograph has hardly any text.

Edits that one news site makes to another's story before publishing it as its own.

Each edit is a pure function from story to story; `apply_edits` chains them. The names say what a reader
would see, and appear in the demo's table as the truth about a page.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from importlib.resources import files
from itertools import cycle, islice
from typing import Any

from opencc import OpenCC

from twinsieve_crawler.demo.articles import Article, load_articles
from twinsieve_crawler.demo.page import DemoPage, content_type
from twinsieve_crawler.demo.templates import FRAMES, Link, article_page, list_page
from twinsieve_crawler.demo.truth import Relation, Truth

Edit = Callable[[Article], Article]

ADVERTS = {
    "zh": (
        "【广告】秋季家装节开幕，地板买十平送两平，预约热线见门店海报。",
        "扫码关注本站公众号，回复“早报”每天领取新闻摘要。",
    ),
    "en": (
        "ADVERTISEMENT: Half-price deck boots at Brill & Daughter until Saturday.",
        "Like this story? Get our morning letter, free, six days a week.",
    ),
}
SOURCE_LINES = {
    "zh": "来源：青河日报  责任编辑：何未  转载请注明出处",
    "en": "Story courtesy of the Harbour Courier. Edited for the Wire by the night desk.",
}
TYPOGRAPHY = str.maketrans({"“": "「", "”": "」", "‘": "『", "’": "』", "—": "－"})
ENGLISH_TYPOGRAPHY = str.maketrans({'"': "”", "'": "’", "-": "‐"})


def new_headline(article: Article) -> Article:
    """Replace the headline, keep the body."""
    return replace(article, title=article.headline)


def source_line(article: Article) -> Article:
    """Add a line that names source and editor."""
    return replace(article, source_line=SOURCE_LINES[article.lang])


def adverts(article: Article) -> Article:
    """Add advertisements between the paragraphs."""
    first, second = ADVERTS[article.lang]
    head, tail = article.paragraphs[:2], article.paragraphs[2:]
    return replace(article, paragraphs=(*head, first, *tail, second))


def tail_cut(article: Article) -> Article:
    """Remove the last sentence, as happens for lack of space."""
    last = article.paragraphs[-1]
    stop = "。" if article.lang == "zh" else ". "
    kept = last.rstrip(stop).rsplit(stop, 1)
    shorter = (kept[0] + stop.strip(),) if len(kept) == 2 else ()
    return replace(article, paragraphs=(*article.paragraphs[:-1], *shorter))


def half(article: Article) -> Article:
    """Keep only the first half, as a teaser does."""
    return replace(article, paragraphs=article.paragraphs[: len(article.paragraphs) // 2])


@lru_cache(maxsize=1)
def _traditional_converter() -> OpenCC:
    return OpenCC("s2t")


def traditional(article: Article) -> Article:
    """Convert to traditional characters."""
    convert = _traditional_converter().convert
    return replace(
        article,
        title=convert(article.title),
        headline=convert(article.headline),
        author=convert(article.author),
        source_line=convert(article.source_line),
        tags=tuple(map(convert, article.tags)),
        paragraphs=tuple(map(convert, article.paragraphs)),
    )


def typography(article: Article) -> Article:
    """Replace quotation marks, dashes and the width of digits."""
    if article.lang == "en":
        return replace(article, paragraphs=tuple(p.translate(ENGLISH_TYPOGRAPHY) for p in article.paragraphs))
    wide = {ord("0") + digit: chr(0xFF10 + digit) for digit in range(10)}
    table = {**TYPOGRAPHY, **wide}
    return replace(article, paragraphs=tuple(p.translate(table) for p in article.paragraphs))


EDITS: dict[str, Edit] = {
    "other template": lambda article: article,
    "new headline": new_headline,
    "source line": source_line,
    "adverts": adverts,
    "tail cut": tail_cut,
    "first half only": half,
    "traditional characters": traditional,
    "typography": typography,
}


def apply_edits(article: Article, names: tuple[str, ...]) -> Article:
    """Return `article` after the named edits, in order; KeyError for a name that does not exist."""
    return reduce(lambda story, name: EDITS[name](story), names, article)


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
    return Article("", "zh", title, author="编辑部", date="2026-10-23", paragraphs=tuple(paragraphs))


def _weather(number: int, day: dict[str, Any]) -> Article:
    """Return the weather bulletin of one day."""
    date = f"{day['date'][5:7]}月{day['date'][8:]}日"
    return Article(
        name=f"zh-weather-{number}",
        lang="zh",
        title=f"青河市天气预报（{date}）",
        section="weather",
        author="市气象台",
        date=day["date"],
        tags=("天气",),
        paragraphs=(
            (
                f"市气象台{date}清晨五时发布：今天白天{day['sky']}，最高气温{day['high']}度，最低气温{day['low']}度，"
                f"{day['wind']}，平均相对湿度{day['humidity']}%。"
            ),
            day["remark"],
            "更多预报请收听早间广播，或拨打气象热线。",
        ),
    )


def _market(number: int, day: dict[str, Any]) -> Article:
    """Return the closing report of the exchange for one day."""
    return Article(
        name=f"en-market-{number}",
        lang="en",
        title=f"Maren exchange: closing report, {day['date']}",
        section="business",
        author="Markets desk",
        date=day["date"],
        tags=("markets",),
        paragraphs=(
            (
                f"The Maren index closed at {day['index']} on {day['date']}, {day['change']} per cent. "
                f"Heating oil stood at {day['oil']} crowns a barrel and one crown bought {day['rate']} florins."
            ),
            day["remark"],
            "Prices are as of half past four. The exchange opens again at nine.",
        ),
    )


@cache
def series_articles() -> tuple[Article, ...]:
    """Return all pages of both series, weather first, oldest first."""
    days = json.loads((files("twinsieve_crawler.demo") / "series.json").read_text("utf-8"))
    weather = [_weather(number, day) for number, day in enumerate(days["weather"], start=1)]
    market = [_market(number, day) for number, day in enumerate(days["market"], start=1)]
    return (*weather, *market)


Repost = tuple[str, str, tuple[str, ...]]

REPOSTS: tuple[Repost, ...] = (
    ("portal", "zh-bridge", ("other template",)),
    ("fanti", "zh-bridge", ("traditional characters", "new headline")),
    ("portal", "zh-library", ("new headline", "adverts")),
    ("portal", "zh-rice", ("tail cut",)),
    ("portal", "zh-metro", ("source line", "typography")),
    ("fanti", "zh-street", ("traditional characters", "adverts")),
    ("portal", "zh-lunch", ("first half only",)),
    ("portal", "zh-birds", ("new headline",)),
    ("fanti", "zh-birds", ("traditional characters",)),
    ("portal", "zh-clinic", ("adverts",)),
    ("portal", "zh-marathon", ("new headline",)),
    ("portal", "zh-photon", ("new headline", "source line", "typography")),
    ("wire", "en-ferry", ("new headline", "source line")),
    ("wire", "en-lighthouse", ("source line",)),
    ("wire", "en-flood", ("adverts",)),
    ("wire", "en-nighttrain", ("typography",)),
    ("wire", "en-orchard", ("tail cut",)),
    ("wire", "en-tools", ("other template",)),
    ("wire", "en-seabirds", ("new headline",)),
    ("wire", "en-orchestra", ("first half only",)),
    ("wire", "en-cyber", ("source line", "adverts")),
)

MOBILE = ("zh-metro",)
"""Stories of the daily whose lists link to a mobile page, which names the full page as canonical."""

PRINTED = ("zh-marathon-safety",)
"""Stories of the daily whose page links to a print view, which names the page as canonical. Nobody reposts them."""

SAME_EVENT = {"zh-bridge-people": "zh-bridge", "zh-marathon-safety": "zh-marathon", "en-ferry-workers": "en-ferry"}
"""Stories by another reporter about an event that another story covers → that story; both are to be kept."""


HOME_SITE = {"zh": "daily", "en": "courier"}
SECTIONS = {
    "daily": {
        "local": "本地新闻",
        "culture": "文化",
        "economy": "经济",
        "society": "社会",
        "sports": "体育",
        "weather": "天气",
    },
    "courier": {"harbour": "Harbour", "culture": "Culture", "science": "Science", "business": "Business"},
}
NAMES = {
    "daily": "今日要闻",
    "portal": "门户头条",
    "fanti": "即時新聞",
    "courier": "Today in Port Maren",
    "wire": "Latest on the wire",
}


@dataclass(frozen=True, slots=True)
class Story:
    """A story on a site, before its page is rendered."""

    path: str
    site: str
    article: Article
    truth: Truth
    canonical: str | None = None


def original_path(article: Article) -> str:
    """Return the path of a story on the site that wrote it."""
    return f"/{HOME_SITE[article.lang]}/{article.section}/{article.name[3:]}.html"


def _originals(articles: Iterable[Article]) -> list[Story]:
    return [Story(original_path(a), HOME_SITE[a.lang], a, _truth_of_original(a)) for a in articles]


def _truth_of_original(article: Article) -> Truth:
    event = SAME_EVENT.get(article.name)
    if event is not None:
        return Truth(article.name, Relation.OWN, f"same event as {event}, another article")
    return Truth(article.name, Relation.ORIGINAL, "original")


def _series() -> list[Story]:
    note = "one of a daily series"
    return [Story(original_path(a), HOME_SITE[a.lang], a, Truth(a.name, Relation.OWN, note)) for a in series_articles()]


def _reposts(articles: dict[str, Article]) -> list[Story]:
    stories = []
    for number, (site, name, edits) in enumerate(REPOSTS, start=10231):
        relation = Relation.PARTLY if "first half only" in edits else Relation.COPY
        path = f"/{site}/story/{number}" if site == "wire" else f"/{site}/a/{number}.html"
        stories.append(Story(path, site, apply_edits(articles[name], edits), Truth(name, relation, ", ".join(edits))))
    return stories


def _same_pages(articles: dict[str, Article], names: Iterable[str], folder: str, what: str) -> list[Story]:
    """Return the pages of stories at other addresses, which name the original as canonical."""
    return [
        Story(f"/daily/{folder}/{name[3:]}.html", "daily", articles[name],
              Truth(name, Relation.SAME_PAGE, f"{what}, canonical link"), original_path(articles[name]))
        for name in names
    ]  # fmt: skip


def _render(story: Story, links: Sequence[Link]) -> DemoPage:
    body = article_page(story.site, story.article, links, story.canonical)
    return DemoPage(
        story.path, (body,), content_type(story.site), story.truth, story.truth.relation is not Relation.SAME_PAGE
    )


def _neighbours(listed: Sequence[Story], story: Story, count: int = 5) -> list[Link]:
    """Return the `count` stories after this one on the same site, for its side column."""
    same = [other for other in listed if other.site == story.site]
    start = same.index(story) + 1 if story in same else 0
    return [(s.path, s.article.title) for s in islice(cycle(same), start, start + min(count, len(same) - 1))]


def _list(path: str, site: str, title: str, stories: Sequence[Story]) -> DemoPage:
    body = list_page(site, title, [(s.path, s.article) for s in stories])
    return DemoPage(path, (body,), content_type(site), Truth(path, Relation.OWN, "list page"))


def _section_lists(stories: Sequence[Story]) -> list[DemoPage]:
    lists = []
    for site, sections in SECTIONS.items():
        for section, title in sections.items():
            chosen = [s for s in stories if s.site == site and s.article.section == section]
            lists.append(_list(f"/{site}/{section}/", site, title, chosen))
    return lists


def _front_pages(stories: Sequence[Story]) -> list[DemoPage]:
    return [_list(f"/{site}/", site, title, [s for s in stories if s.site == site]) for site, title in NAMES.items()]


def build_site() -> dict[str, DemoPage]:
    """Return every page of the demo site by path."""
    articles = load_articles()
    mobile = _same_pages(articles, MOBILE, "m", "mobile page")
    printed = _same_pages(articles, PRINTED, "print", "print view")
    stories = [*_originals(articles.values()), *_series(), *_reposts(articles), *mobile]
    replaced = {story.canonical for story in mobile}  # lists link to the mobile page instead
    listed = [story for story in stories if story.path not in replaced]
    pages = [*small_pages(NAMES), *_front_pages(listed), *_section_lists(listed)]
    prints = {story.canonical: (story.path, "打印本页") for story in printed}
    for story in [*stories, *printed]:
        links = _neighbours(listed, story)
        pages.append(_render(story, [*links, prints[story.path]] if story.path in prints else links))
    return {page.path: page for page in pages}
