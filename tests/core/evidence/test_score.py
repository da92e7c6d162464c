"""Tests for the score of two pages: which pairs are copies, and which are other items of a series."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from tests.core.evidence.any_evidence import PASSAGES, evidence_pairs
from tests.made_evidence import evidence_of

STORIES = {
    "Chinese": [
        "市交通局昨天宣布，跨江大桥的主体工程已经提前完工，桥面铺装将在雨季到来之前结束。",
        "大桥连接老城区和新的工业园区，居民过江的时间从四十分钟缩短到不足十分钟。",
        "工程师介绍说，主塔的基础穿过厚厚的淤泥，落在坚硬的岩石上，可以抵抗强烈的地震。",
        "附近的渔民曾经担心施工会影响鱼类产卵，设计单位因此调整了围堰的位置和开挖的顺序。",
        "沿岸的几所学校组织学生参观工地，孩子们把自己画的大桥挂在了项目部的走廊里。",
        "通车之后，两岸的公交线路将重新规划，夜间班车会一直运行到最后一班渡轮停航以后。",
        "当地的商户希望游客因此增多，不过也有老人说，他们会怀念清晨渡口的汽笛声。",
    ],
    "English": [
        "The city council said that the old harbour bridge will close for repairs this autumn.",
        "Engineers found fine cracks in several of the steel bearings during a routine inspection in spring.",
        "Drivers will be sent along the northern embankment, which usually adds a quarter of an hour to the trip.",
        "Shop owners near the market fear for their trade, since most of their customers arrive by bus.",
        "The cyclists' union asked for a lane of its own and was promised one on the eastern side.",
        "Schools on the island have agreed to start later, so that children need not leave home in the dark.",
        "A museum wants to keep the lamps and railings, which were cast by a foundry that no longer exists.",
    ],
    "German": [
        "Die Stadt teilte mit, dass die alte Hafenbrücke im Herbst für Reparaturen gesperrt wird.",
        "Bei einer Prüfung hatten Ingenieure im Frühjahr feine Risse in mehreren Lagern aus Stahl gefunden.",
        "Autofahrer werden über das nördliche Ufer umgeleitet und brauchen etwa eine Viertelstunde länger.",
        "Händler am Markt fürchten um ihren Umsatz, weil die meisten Kunden mit dem Bus zu ihnen kommen.",
        "Der Verband der Radfahrer verlangte einen eigenen Streifen und bekam ihn auf der östlichen Seite.",
        "Die Schulen auf der Insel beginnen später, damit Kinder nicht im Dunkeln aus dem Haus müssen.",
        "Ein Museum will Lampen und Geländer behalten, die eine längst vergessene Gießerei gegossen hat.",
    ],
}
EDITED = {
    "Chinese": "记者在现场看到，工人们正在安装最后一批路灯，彩色的灯光已经开始调试。",
    "English": "A spokesman added that the work would be done at night whenever the weather allowed it.",
    "German": "Ein Sprecher ergänzte, dass nachts gearbeitet werde, sobald das Wetter es erlaube.",
}
SERIES = {
    "Chinese": "{date}，{place}气象台发布天气预报：最高气温{a}度，最低气温{b}度，降水概率{c}%，东南风{d}级。"
    "{place}的空气质量指数为{e}，能见度{f}公里，湿度{g}%，日出时间{h}点，请市民注意。"
    "未来一周平均气温{i}度，累计降水{j}毫米，比去年同期多{k}毫米，主要集中在{place}。",
    "English": "Weather report for {place} on {date}: a high of {a} degrees, a low of {b}, with a {c} percent chance "
    "of rain and wind at {d} knots. In {place} the air quality index is {e}, visibility is {f} miles and humidity {g} "
    "percent. Sunrise is at {h}. Over the week expect {i} degrees, {j} millimetres of rain, {k} more than last year.",
    "German": "Wetterbericht für {place} am {date}: höchstens {a} Grad, mindestens {b}, Regen mit {c} Prozent und Wind "
    "mit {d} Knoten. In {place} liegt der Luftindex bei {e}, die Sicht bei {f} Kilometern, die Feuchte bei {g} "
    "Prozent. Sonnenaufgang um {h}. In der Woche {i} Grad, {j} Millimeter Regen, {k} mehr als im letzten Jahr.",
}
ITEMS = {
    "Chinese": [("3月4日", "江城"), ("6月18日", "海州")],
    "English": [("4 March", "Norwich"), ("18 June", "Swansea")],
    "German": [("4. März", "Husum"), ("18. Juni", "Görlitz")],
}
TITLES = {"Chinese": "今日天气预报", "English": "Today's weather report", "German": "Der Wetterbericht von heute"}
LANGUAGES = pytest.mark.parametrize("language", STORIES)


def page(text: str, title: str = "") -> Evidence:
    """Return the evidence of a page."""
    return Evidence(evidence_of(text, title))


def item(language: str, number: int) -> str:
    """Return an item of a series: a weather report with a date, a place and numbers of its own."""
    date, place = ITEMS[language][number]
    numbers = {name: 11 + at * 7 + number * 35 for at, name in enumerate("abcdefghijk")}
    return SERIES[language].format(date=date, place=place, **numbers)


@LANGUAGES
def test_a_repost_with_an_edited_sentence_is_a_copy(language: str) -> None:
    """One sentence of seven was written anew."""
    story = STORIES[language]
    edited = [*story[:3], EDITED[language], *story[4:]]
    join = "" if language == "Chinese" else " "
    assert Similarity(page(join.join(story)), page(join.join(edited))).score > 0.0


@LANGUAGES
def test_two_items_of_a_series_are_no_copies(language: str) -> None:
    """Their sentences are the same, but for dates, places and numbers."""
    title = TITLES[language]
    assert Similarity(page(item(language, 0), title), page(item(language, 1), title)).score < 0.0


NOTICES = {
    "Chinese": (
        "{}同志任前公示",
        (
            "根据干部选拔任用工作有关规定，现将{}同志的有关情况公示如下，征求社会各界的意见。公示期为五个工作日。{}同志长期在"
            "基层工作，作风扎实，群众评价良好，拟任县水利局副局长。公示期间，对{}同志有意见的，请以书面或电话的形式向县委组织部"
            "反映，反映人应当署真实姓名和联系方式，以便核实。"
        ),
        ("张建国", "李卫东"),
    ),
    "English": (
        "{} a backup plan",
        (
            "The page of a plan has a menu with all that can be done. To {} a plan, choose the line that says {}, and "
            "then the region in which the plan is. The account needs the rights of an operator, and the region must "
            "not be locked. It takes a minute until all machines know of it; the log of the region says when they do. "
            "If you {} a plan by mistake, ask the owner of the region within the hour."
        ),
        ("create", "delete"),
    ),
}


@pytest.mark.parametrize("language", NOTICES)
def test_pages_of_one_host_about_two_things_are_of_a_series(language: str) -> None:
    """Their titles name what differs; a copy under another headline differs elsewhere."""
    title, text, things = NOTICES[language]
    one, other = (page(text.replace("{}", thing), title.format(thing)) for thing in things)
    assert Similarity(one, other, same_host=True).series == 1.0
    assert Similarity(one, other, same_host=False).series == 0.0
    retitled = page(text.replace("{}", things[0]), STORIES[language][0])
    assert Similarity(one, retitled, same_host=True).series == 0.0


@LANGUAGES
def test_a_series_is_of_one_host_under_one_title(language: str) -> None:
    """A copy on another host, and pages under other titles, may have a date of their own."""
    title = TITLES[language]
    one, other = page(item(language, 0), title), page(item(language, 1), title)
    renamed = page(item(language, 1), STORIES[language][0])
    assert Similarity(one, other, same_host=True).series == 1.0
    assert Similarity(one, other, same_host=False).series == 0.0
    assert Similarity(one, renamed, same_host=True).series == 0.0
    assert Similarity(one, one, same_host=True).series == 0.0
    assert Similarity(page("".join(STORIES[language]), title), other, same_host=True).series == 0.0


OPENINGS = {
    "Chinese": (
        "海门日报4月12日从施工现场发回的报道，记者林晓，通讯员陈刚，图片由项目部提供。",
        "据港城晚报数字版5月6日早间的消息，本报与多家媒体联合走访了江北和沿岸的街道。",
    ),
    "English": (
        "Reported on 12 April by our correspondents at the harbour, with pictures that readers sent to this paper. ",
        "The Evening Ledger, 6 May: this story is part of what we wrote about the old bridges along our river. ",
    ),
    "German": (
        "Bericht vom 12. April aus dem Hafen, mit Bildern, die Leserinnen und Leser uns freundlich überlassen haben. ",
        "Abendblatt, 6. Mai: Der Beitrag gehört zu einer Reihe, die unser Haus über alte Brücken am Fluss schreibt. ",
    ),
}


@LANGUAGES
def test_a_copy_with_another_opening_is_of_no_series(language: str) -> None:
    """Items of a series state their dates in the same words; a host may repost its story below another first line."""
    text = "".join(STORIES[language])
    one, other = (page(opening + text, TITLES[language]) for opening in OPENINGS[language])
    assert Similarity(one, other, same_host=True).series == 0.0
    dated = page(OPENINGS[language][0].replace("12", "13") + text, TITLES[language])
    assert Similarity(one, dated, same_host=True).series == 1.0


TEXTS = st.lists(st.sampled_from([*PASSAGES, *STORIES["English"], *STORIES["Chinese"]]), max_size=12).map(" ".join)
BIAS = Similarity(Evidence(b""), Evidence(b"")).score - sum(
    points for _, _, points in Similarity(Evidence(b""), Evidence(b"")).points
)


@given(TEXTS, TEXTS, st.sampled_from(["", "a bridge", "大桥"]), st.booleans())
def test_both_orders_have_the_same_score(one: str, other: str, title: str, same_host: bool) -> None:
    """And the same quantities and points."""
    ours, theirs = page(one, title), page(other, "a bridge")
    found = Similarity(ours, theirs, same_host=same_host)
    turned = Similarity(theirs, ours, same_host=same_host)
    assert (turned.score, turned.series, turned.points) == (found.score, found.series, found.points)


@given(evidence_pairs())
def test_a_score_is_the_sum_of_its_points(pair: tuple[bytes, bytes]) -> None:
    """Of evidence of any kind."""
    found = Similarity(*map(Evidence, pair))
    assert found.score == pytest.approx(BIAS + sum(points for _, _, points in found.points))


@given(TEXTS)
def test_no_page_is_a_better_copy_than_the_page_itself(text: str) -> None:
    """Nothing is against a match of a page with itself."""
    found = Similarity(page(text), page(text), same_host=True)
    assert all(points >= 0.0 for _, _, points in found.points)
    assert found.series == 0.0
