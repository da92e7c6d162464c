"""Put the demo site together: every address, its bytes, and the truth about it.

The five sites live under five path prefixes of one host, so that one crawl from `/` sees them all.
Invariants: the same bytes every time; every page but `/private/` can be reached by links from `/`; no link
points to a page that does not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from crawler.demo.articles import Article, load_articles
from crawler.demo.edits import apply_edits
from crawler.demo.plan import MOBILE, REPOSTS, SAME_EVENT
from crawler.demo.series import series_articles
from crawler.demo.templates import FRAMES, Link, article_page, list_page
from crawler.demo.truth import Relation, Truth

__all__ = ["DemoPage", "build_site"]

HOME_SITE = {"zh": "daily", "en": "courier"}
SECTIONS = {
    "daily": {"local": "本地新闻", "culture": "文化", "economy": "经济", "society": "社会", "sports": "体育", "weather": "天气"},
    "courier": {"harbour": "Harbour", "culture": "Culture", "science": "Science", "business": "Business"},
}
NAMES = {"daily": "今日要闻", "portal": "门户头条", "fanti": "即時新聞", "courier": "Today in Port Maren", "wire": "Latest on the wire"}


@dataclass(frozen=True, slots=True)
class DemoPage:
    """One address of the site. bodies: what is served at the 1st, 2nd, … visit; the last one from then on."""

    path: str
    bodies: tuple[bytes, ...]
    content_type: str
    truth: Truth
    in_sitemap: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """A story placed on a site, before its page is drawn."""

    path: str
    site: str
    article: Article
    truth: Truth
    canonical: str | None = None


def original_path(article: Article) -> str:
    """The address of a story on the site that wrote it."""
    return f"/{HOME_SITE[article.lang]}/{article.section}/{article.date}/{article.name[3:]}.html"


def _originals(articles: Iterable[Article]) -> list[Story]:
    return [Story(original_path(a), HOME_SITE[a.lang], a, _truth_of_original(a)) for a in articles]


def _truth_of_original(article: Article) -> Truth:
    event = SAME_EVENT.get(article.name)
    if event is not None:
        return Truth(article.name, Relation.OWN, f"same event as {event}, another article")
    return Truth(article.name, Relation.ORIGINAL, "original")


def _series() -> list[Story]:
    note = "one of a daily series"
    return [
        Story(original_path(a), HOME_SITE[a.lang], a, Truth(a.name, Relation.OWN, note)) for a in series_articles()
    ]


def _reposts(articles: dict[str, Article]) -> list[Story]:
    stories = []
    for number, (site, name, edits) in enumerate(REPOSTS, start=10231):
        relation = Relation.PARTLY if "first half only" in edits else Relation.COPY
        path = f"/{site}/story/{number}" if site == "wire" else f"/{site}/a/{number}.html"
        stories.append(Story(path, site, apply_edits(articles[name], edits), Truth(name, relation, ", ".join(edits))))
    return stories


def _mobile(articles: dict[str, Article]) -> list[Story]:
    return [
        Story(f"/daily/m/{name[3:]}.html", "daily", articles[name],
              Truth(name, Relation.SAME_PAGE, "mobile page, canonical link"), original_path(articles[name]))
        for name in MOBILE
    ]  # fmt: skip


def _draw(story: Story, links: Sequence[Link]) -> DemoPage:
    body = article_page(story.site, story.article, links, story.canonical)
    return DemoPage(story.path, (body,), _content_type(story.site), story.truth, story.truth.relation is not Relation.SAME_PAGE)


def _content_type(site: str) -> str:
    return f"text/html; charset={FRAMES[site].encoding}"


def _neighbours(stories: Sequence[Story], index: int, count: int = 5) -> list[Link]:
    """The `count` stories after this one on the same site, as its side column shows them."""
    same = [s for s in stories if s.site == stories[index].site]
    start = same.index(stories[index]) + 1
    return [(s.path, s.article.title) for s in islice(cycle(same), start, start + min(count, len(same) - 1))]


def _list(path: str, site: str, title: str, stories: Sequence[Story]) -> DemoPage:
    body = list_page(site, title, [(s.path, s.article) for s in stories])
    return DemoPage(path, (body,), _content_type(site), Truth(path, Relation.OWN, "list page"))


def _section_lists(stories: Sequence[Story]) -> list[DemoPage]:
    lists = []
    for site, sections in SECTIONS.items():
        for section, title in sections.items():
            chosen = [s for s in stories if s.site == site and s.article.section == section]
            lists.append(_list(f"/{site}/{section}/", site, title, chosen))
    return lists


def _front_pages(stories: Sequence[Story]) -> list[DemoPage]:
    return [_list(f"/{site}/", site, title, [s for s in stories if s.site == site]) for site, title in NAMES.items()]


def _home() -> DemoPage:
    links = "\n".join(f'<li><a href="/{site}/">{FRAMES[site].site_name}</a></li>' for site in NAMES)
    more = '<li><a href="/daily/live/storm.html">暴雨直播</a></li><li><a href="/daily/photo/1.html">图集</a></li><li><a href="/private/login">登录</a></li>'
    html = f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>twinsieve demo</title></head><body><ul>{links}{more}</ul></body></html>'
    return DemoPage("/", (html.encode(),), "text/html; charset=utf-8", Truth("/", Relation.OWN, "list of sites"))


LIVE = (
    "13时30分，市防汛办启动四级响应，要求沿江各闸站安排双岗。青河水位目前二十一点四米，比警戒线低一点八米，仍在缓慢上涨，预计傍晚出现第一个小高峰。",
    "14时10分，老城区三处积水点开始抽排，公交九路临时绕行纺织路，轮渡停航。中小学提前一小时放学，各校在门口设了等候区，由老师陪同学生等家长来接。",
    "15时05分，云岭新区一处工地围挡被风吹倒，没有人员受伤，消防员用二十分钟清理完毕。供电部门表示，南郊有两条线路跳闸，约六百户停电，抢修车已经出发。",
    "16时40分，雨势减弱，上游水库按计划控制下泄流量。气象台将暴雨橙色预警降为黄色，夜间仍有阵雨。积水点全部退水，公交九路恢复原线，轮渡视能见度于次日清晨复航。",
    "17时25分，南郊停电的六百户全部恢复供电。市防汛办提醒，低洼处车库不要急于开车进出，待检查排水泵后再使用；河边步道仍然封闭，请不要靠近护栏拍照。",
)


def _live() -> DemoPage:
    story = Article("zh-live", "zh", "直播：青河市迎战暴雨", "", "live", "本报记者", "2026-10-23", ("暴雨",), LIVE[:3])
    later = replace(story, paragraphs=LIVE)
    bodies = tuple(article_page("daily", s, [("/daily/", "青河日报网首页")]) for s in (story, later))
    truth = Truth("zh-live", Relation.SAME_PAGE, "live page, grows between visits")
    return DemoPage("/daily/live/storm.html", bodies, _content_type("daily"), truth)


def _small_pages() -> list[DemoPage]:
    about_zh = Article("about-zh", "zh", "关于我们", "", "about", "编辑部", "2026-01-01", (),
                       ("青河日报创刊于一座老印刷厂的二楼，现有记者二十三人，每天出报八版。投稿请寄望江路十七号，稿件一经采用即付稿酬，恕不退稿。",))
    about_en = Article("about-en", "en", "About the Courier", "", "about", "The editors", "2026-01-01", (),
                       ("The Harbour Courier has been printed above the chandlery in Quay Street for as long as anyone can remember. It employs eleven people and a cat, corrects its mistakes on page two, and belongs to its readers.",))
    photo = Article("photo", "zh", "图集：月湖落日", "", "photo", "沈一苇", "2026-10-26", (), ("摄影：老耿",))
    placed = (("/daily/about.html", "daily", about_zh, "about page"), ("/courier/about.html", "courier", about_en, "about page"),
              ("/daily/photo/1.html", "daily", photo, "a photograph, hardly any text"))  # fmt: skip
    return [
        DemoPage(path, (article_page(site, story, ()),), _content_type(site), Truth(path, Relation.OWN, note))
        for path, site, story, note in placed
    ]


def build_site() -> dict[str, DemoPage]:
    """Return every page of the demo site by path."""
    articles = load_articles()
    stories = [*_originals(articles.values()), *_series(), *_reposts(articles), *_mobile(articles)]
    pages = [_home(), *_front_pages(stories), *_section_lists(stories), _live(), *_small_pages()]
    pages += [_draw(story, _neighbours(stories, index)) for index, story in enumerate(stories)]
    return {page.path: page for page in pages}
