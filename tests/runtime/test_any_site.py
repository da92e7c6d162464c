"""What a crawl team meets on other sites than news: shops, tickets, templates, comment threads."""

import random
from collections.abc import Iterator

import pytest

from dedup_service import PROFILES, NearDuplicateFilter, Page, VerdictKind

PLACES = ("港口", "车站", "图书馆", "老城区", "工业园", "市民中心", "滨河公园", "第三小学", "菜市场", "体育馆")
PEOPLE = ("工程队", "居民", "管理处", "设计师", "志愿者", "商户", "巡查员", "学生", "调度员", "摄影师")
DEEDS = ("检查了", "重新粉刷了", "登记了", "拍下了", "讨论了", "封闭了", "测量了", "清理了", "介绍了", "恢复了")
THINGS = (
    "东侧的台阶",
    "旧的水泵",
    "一段围墙",
    "夜间的照明",
    "入口的坡道",
    "雨水管道",
    "公告栏",
    "两排梧桐",
    "货运通道",
    "老钟楼",
)
WHEN = ("清晨", "午后", "傍晚", "周末", "雨停之后", "开工之前", "节日前夕", "入冬以来", "检修期间", "闭馆之后")
WHY = ("以免积水", "方便轮椅通行", "为新的班次作准备", "因为有人投诉", "按照去年的计划", "费用由街道承担")


def sentences(seed: object, number: int) -> list[str]:
    """Sentences of our own that other seeds do not have."""
    rng = random.Random(f"{seed}")
    return [
        f"{rng.choice(WHEN)}，{rng.choice(PLACES)}的{rng.choice(PEOPLE)}{rng.choice(DEEDS)}{rng.choice(THINGS)}，"
        f"编号{''.join(chr(rng.randrange(0x4E00, 0x5600)) for _ in range(18))}，{rng.choice(WHY)}。"
        for _ in range(number)
    ]


def title(seed: object) -> str:
    """A headline of its own."""
    rng = random.Random(f"title {seed}")
    return "".join(rng.choices("山川湖海云雨风雪花鸟鱼虫桥路楼台春夏秋冬东南西北", k=10))


@pytest.fixture
def dedup() -> Iterator[NearDuplicateFilter]:
    """A filter in memory, with the default profile."""
    with NearDuplicateFilter.open(None) as opened:
        yield opened


def page(url: str, text: str, title: str = "") -> Page:
    """A page as a reader of files makes it."""
    return Page(url=url, canonical_url=url, id=url, title=title, text=text)


def kinds(dedup: NearDuplicateFilter, pages: list[Page]) -> list[VerdictKind]:
    """The verdicts on pages, in their order."""
    return [verdict.kind for verdict in dedup.check_many(pages)]


def test_products_without_a_description_are_kept(dedup: NearDuplicateFilter) -> None:
    """A stock phrase under other titles is another page each time."""
    names = [f"{colour} mug, {size} ml" for colour in ("Blue", "Red", "Grey", "Green") for size in range(200, 700, 100)]
    shop = [page(f"https://shop.example/p/{n}", "No description available.", name) for n, name in enumerate(names)]
    assert len(shop) == 20
    assert VerdictKind.DUPLICATE not in kinds(dedup, shop)


def test_short_tickets_of_one_form_are_told_apart_and_their_copies_found(dedup: NearDuplicateFilter) -> None:
    """Five hundred tickets differ in a number or two; an exact copy of each is a duplicate of that one."""
    texts = [f"工单 {n}：{PLACES[n % 10]}路灯不亮，报修人工号 {n * 7 + 3}，请派人处理。" for n in range(500)]
    tickets = [page(f"https://desk.example/t/{n}", text) for n, text in enumerate(texts)]
    copies = [page(f"https://mirror.example/t/{n}", text) for n, text in enumerate(texts)]
    assert VerdictKind.DUPLICATE not in kinds(dedup, tickets)
    verdicts = dedup.check_many(copies)
    assert [verdict.duplicate_of for verdict in verdicts] == [ticket.id for ticket in tickets]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8])
def test_edited_copies_on_a_site_with_a_template_are_found(dedup: NearDuplicateFilter, share: float) -> None:
    """However much of each page the site's own text is: the articles are told apart, and their edited copies found."""
    own, number = 12, 400
    template = sentences("template", round(own * share / (1 - share)))
    stories = [sentences(n, own) for n in range(number)]

    def at(url: str, story: list[str], name: str) -> Page:
        return page(url, "\n".join([*template, *story]), name)

    site = [at(f"https://site.example/{n}", story, title(n)) for n, story in enumerate(stories)]
    merged = kinds(dedup, site).count(VerdictKind.DUPLICATE)
    assert merged <= (4 if share == 0.8 else 0)  # before the template came under five titles
    edited = [
        at(f"https://site.example/again/{n}", [*sentences(f"new {n}", 1), *stories[n][2:]], title(n))
        for n in range(number - 100, number)
    ]
    found = [verdict.duplicate_of for verdict in dedup.check_many(edited)]
    right = sum(original == f"https://site.example/{n}" for n, original in enumerate(found, number - 100))
    assert right >= (98 if share < 0.8 else 92)


@pytest.mark.parametrize("profile", ["balanced", "precise"])
def test_the_first_articles_of_a_site_are_kept(profile: str) -> None:
    """Before a template of more than half of each page is known as such, too."""
    template = sentences("template", 18)
    site = [page(f"https://site.example/{n}", "\n".join([*template, *sentences(n, 12)]), title(n)) for n in range(5)]
    with NearDuplicateFilter.open(None, rule=PROFILES[profile]) as opened:
        assert kinds(opened, site) == [VerdictKind.UNIQUE] * 5


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_copies_without_the_template_are_found(dedup: NearDuplicateFilter, share: float) -> None:
    """Other hosts repost the articles of a site without its frame, and edited."""
    own, number = 12, 300
    template = sentences("template", round(own * share / (1 - share)))
    stories = [sentences(n, own) for n in range(number)]
    kinds(
        dedup, [page(f"https://site.example/{n}", "\n".join([*template, *stories[n]]), title(n)) for n in range(number)]
    )
    copies = [
        page(f"https://copy{n}.example/", "\n".join([*sentences(f"new {n}", 1), *stories[n][2:]]), title(n))
        for n in range(number - 100, number)
    ]
    found = [verdict.duplicate_of for verdict in dedup.check_many(copies)]
    assert sum(original == f"https://site.example/{n}" for n, original in enumerate(found, number - 100)) >= 95


@pytest.mark.parametrize(
    ("profile", "lengths"),
    [("precise", (7_000, 7_000)), ("precise", (100, 12_000)), ("balanced", (100, 12_000)), ("broad", (100, 12_000))],
)
def test_what_lies_behind_the_stream_counts(profile: str, lengths: tuple[int, int]) -> None:
    """Two long pages begin alike for more tokens than are kept, and then tell other things, or one of them nothing."""

    def letters(seed: object, number: int) -> str:
        rng = random.Random(f"{seed}")
        return "".join(chr(rng.randrange(0x4E00, 0x5600)) for _ in range(number))

    beginning = letters("beginning", 6_500)
    pages = [
        page(f"https://p{n}.example/", f"{beginning}\n{letters(n, length)}", title("one"))
        for n, length in enumerate(lengths)
    ]
    with NearDuplicateFilter.open(None, rule=PROFILES[profile]) as opened:
        assert kinds(opened, pages) == [VerdictKind.UNIQUE, VerdictKind.UNIQUE]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Published 1998 by Penguin, 320 pages, £9", "Published 2011 by Faber, 96 pages, £35"),
        ("型号A12，现价145元，收藏", "型号B77，现价980元，收藏"),
        ("From: Leeds to Bath\nDate: 12 May, 14:30, £25", "From: Dover to York\nDate: 3 June, 9:10, £48"),
        ("200 g flour\n30 g sugar\n5 eggs\n120 ml milk", "450 g flour\n80 g sugar\n2 eggs\n300 ml milk"),
        (
            "It feels like 30 degrees, then like 25, then like 21.",
            "It feels like 12 degrees, then like 9, then like 4.",
        ),
    ],
)
def test_facts_on_lines_of_their_own_count(dedup: NearDuplicateFilter, one: str, other: str) -> None:
    """Lines that look like a frame, a mail or a list tell two pages of one shop apart."""
    shop = "\n".join(sentences("shop", 6))
    pages = [page(f"https://shop.example/{n}", f"{facts}\n{shop}", "Offer") for n, facts in enumerate((one, other))]
    assert kinds(dedup, pages) == [VerdictKind.UNIQUE, VerdictKind.UNIQUE]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("利率上调 1.5%", "利率上调 15%"),
        ("今夜气温 −12 度", "今夜气温 +12 度"),
        ("用 C++ 写的排序", "用 C# 写的排序"),
        ("门票 $500 一张", "门票 €500 一张"),
        ("लड़के स्कूल गए", "लड़की स्कूल गए"),
        ("เขาเป็นไข้", "เขาเป็นไข่"),
    ],
)
def test_what_carries_meaning_makes_another_text(dedup: NearDuplicateFilter, one: str, other: str) -> None:
    """Signs, decimal points, currencies, vowels and tones."""
    verdicts = dedup.check_many([page("https://a.example/1", one), page("https://a.example/2", other)])
    assert all(verdict.score is None for verdict in verdicts)
    again = dedup.check_many([page("https://b.example/1", one), page("https://b.example/2", other)])
    assert [verdict.duplicate_of for verdict in again] == ["https://a.example/1", "https://a.example/2"]


@pytest.mark.parametrize("profile", ["balanced", "broad"])
def test_two_articles_with_one_comment_thread_are_two(profile: str) -> None:
    """Extraction took the comments along, half of each page and the same for both: 8,000 and 12,000 letters."""
    thread = "\n".join(sentences("thread", 150))[:6000]
    articles = [
        page(f"https://paper.example/{n}", "".join(sentences(n, 300))[: length - len(thread)] + "\n" + thread, title(n))
        for n, length in ((1, 8000), (2, 12000))
    ]
    with NearDuplicateFilter.open(None, rule=PROFILES[profile]) as dedup:
        assert kinds(dedup, articles) == [VerdictKind.UNIQUE, VerdictKind.UNIQUE]


@pytest.mark.parametrize("name", ["Daily News", ""])
def test_articles_of_a_site_with_one_title_are_told_apart(dedup: NearDuplicateFilter, name: str) -> None:
    """Two thirds of each page are the site's frame, and all pages have its name as title, or none."""
    frame = sentences("frame", 16)
    site = [page(f"https://one.example/{n}", "\n".join([*frame, *sentences(n, 8)]), name) for n in range(300)]
    found = kinds(dedup, site)
    assert found.count(VerdictKind.UNIQUE) >= 250
    assert VerdictKind.DUPLICATE not in found[100:]


@pytest.mark.parametrize("titled", [True, False])
def test_facets_are_duplicates(dedup: NearDuplicateFilter, titled: bool) -> None:
    """Pages of one shop, each at a hundred addresses with the same title and text: none is passed on undecided."""
    stories = ["\n".join(sentences(n, 12)) for n in range(40)]
    facets = [
        page(f"https://shop.example/{n}?sort={facet}", text, title(n) if titled else "")
        for facet in range(100)
        for n, text in enumerate(stories)
    ]
    found = kinds(dedup, facets)
    assert found.count(VerdictKind.UNIQUE) == len(stories)
    assert found.count(VerdictKind.DUPLICATE) == len(facets) - len(stories)


@pytest.mark.parametrize("length", [20, 30, 50, 100, 200, 500, 2000])
def test_exact_copies_of_any_length_are_found(dedup: NearDuplicateFilter, length: int) -> None:
    """From twenty letters on, all of them, among many texts of one kind."""
    texts = ["".join(sentences(n, 1 + length // 30))[-length:] for n in range(200)]
    originals = [page(f"https://a.example/{n}", text) for n, text in enumerate(texts)]
    kept = [
        original.id
        for original, kind in zip(originals, kinds(dedup, originals), strict=True)
        if kind is not VerdictKind.DUPLICATE
    ]
    assert len(kept) >= 198
    copies = dedup.check_many([page(f"https://b.example/{n}", text) for n, text in enumerate(texts)])
    assert [copy.kind for copy in copies] == [VerdictKind.DUPLICATE] * len(texts)
