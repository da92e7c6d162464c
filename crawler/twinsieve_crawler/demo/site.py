"""Builds the demo site: every path, its bytes, and the truth about it.

The five sites have five path prefixes on one host, so that one crawl from `/` visits them all.
Invariants: every build has the same bytes; every page but `/private/` can be reached from `/` by links and
canonical links; no link points to a page that does not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from twinsieve_crawler.demo.articles import Article, load_articles
from twinsieve_crawler.demo.edits import apply_edits
from twinsieve_crawler.demo.page import DemoPage, content_type
from twinsieve_crawler.demo.plan import MOBILE, PRINTED, REPOSTS, SAME_EVENT
from twinsieve_crawler.demo.series import series_articles
from twinsieve_crawler.demo.small_pages import small_pages
from twinsieve_crawler.demo.templates import Link, article_page, list_page
from twinsieve_crawler.demo.truth import Relation, Truth

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
