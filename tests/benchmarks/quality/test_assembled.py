"""Assembled pages: templates have their share, pages are different, and copies are edited as stated."""

import random
from collections import Counter

import numpy as np
import pytest

from benchmarks.quality.assembled import (
    DROPPED,
    OWN,
    PAGES_A_HOST,
    REPLACED,
    Crawl,
    chance_overlap,
    letters_of,
    library_of,
    sentences_of,
)
from benchmarks.quality.short_copies import FORMS, LENGTHS, texts_of
from dedup_service.core.page import Page

WORDS = """
清晨 渔夫 小船 湖面 薄雾 木桨 码头 篮子 鲜鱼 市场 老人 孩子 雨伞 石桥 河岸 柳树 风筝 笛声 山坡 羊群 牧人 草地
木屋 炊烟 灯火 黄昏 车站 列车 旅客 行李 月台 钟声 信件 邮差 书店 画册 茶馆 棋盘 邻居 花园 桂花 蜂箱 果园 苹果
麦田 谷仓 磨坊 面包 炉火 冬天 雪地 脚印 远方 海风 灯塔 帆船 沙滩 贝壳 画家 颜料 窗台 猫咪 阳光 午后 歌声 舞台
""".split()  # noqa: SIM905 - words by line


def made(count):
    """Return `count` sentences of six to eleven words in random order."""
    rng = random.Random(3)
    chosen = (rng.choices(WORDS, k=rng.randint(6, 11)) for _ in range(count))
    return ["".join(words[:3]) + "，" + "".join(words[3:]) for words in chosen]


def pages(count=400):
    """Return pages of twenty made sentences, each with a title of its own."""
    lines = made(count * 20)
    titles = made(count)
    return [
        Page(
            url=f"https://made.example/{n}",
            canonical_url=f"https://made.example/{n}",
            id=f"p{n}",
            title=titles[n],
            text="。".join(lines[n * 20 : n * 20 + 20]),
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def library():
    """A library of the made pages, whose own sentences last for 350 pages."""
    return library_of(pages())


def own_sentences(library, crawl, page, host=0):
    """Return the sentences of a page that are not its template's."""
    lines = page.text.replace("\n", "").strip("。").split("。")
    return list((Counter(lines) - Counter(crawl.template(library, host))).elements())


def test_sentences_are_runs_of_clauses_of_a_bounded_length():
    """Long sentences are cut at commas, and what is too short or too long is omitted."""
    text = "清晨渔夫把小船推进了湖面。短句！" + "木桨划过薄雾，码头上篮子装满鲜鱼，" * 3
    found = list(sentences_of([text]))
    assert "短句" not in found
    assert len(found) == 4
    assert all(12 <= len(letters_of(line)) <= 24 for line in found)
    assert all(line in text for line in found)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_template_has_its_share_of_the_letters(library, share, mixed):
    """The mean share is within .02, and the same sentences are in every page of a host."""
    crawl = Crawl(share, mixed)
    shares = []
    for number in range(0, 200, 10):  # of host 0 if there are several
        page = crawl.page(library, number)
        template = crawl.template(library, 0)
        assert all(line in page.text for line in template)
        shares.append(sum(len(letters_of(line)) for line in template) / len(letters_of(page.text)))
    assert np.mean(shares) == pytest.approx(share, abs=0.02)


def test_pages_have_their_own_sentences_and_titles(library):
    """Also after the real sentences are used up: of random pairs of halves, hardly any comes twice."""
    crawl, count = Crawl(0.3), 900
    assert count * OWN > 2 * len(library.own.texts)
    all_pages = [crawl.page(library, number) for number in range(count)]
    lines = [line for page in all_pages for line in own_sentences(library, crawl, page)]
    assert len(lines) == count * OWN
    assert len(set(lines)) >= len(lines) - 5
    assert len({page.title for page in all_pages}) >= count - 5
    assert len({page.text for page in all_pages}) == count


def test_real_sentences_come_first_then_halves_of_two(library):
    """The supply begins with the real sentences, and then uses each half once in a turn."""
    supply, count = library.own, len(library.own.texts)
    assert [supply[place] for place in range(count)] == list(supply.texts)
    combined = [supply[place] for place in range(count, count + 300)]
    beginnings = {text[:4] for text in supply.texts}
    ends = {text[-4:] for text in supply.texts}
    assert all(text[:4] in beginnings and text[-4:] in ends for text in combined)
    assert set(combined).isdisjoint(supply.texts)


def test_hosts_of_a_mixed_crawl_take_turns(library):
    """Ten hosts have a hundred pages each and alternate; then come ten others with other templates."""
    crawl = Crawl(0.6, mixed=True)
    hosts = [crawl.page(library, number).url.split("/")[2] for number in range(3_000)]
    assert len(set(hosts[:10])) == 10
    assert set(Counter(hosts).values()) == {PAGES_A_HOST}
    assert set(hosts[:1_000]).isdisjoint(hosts[1_000:])
    assert set(crawl.template(library, 0)).isdisjoint(crawl.template(library, 1))


@pytest.mark.parametrize("where", ["same host", "other host", "no template"])
def test_a_copy_drops_and_replaces_sentences(library, where):
    """Three of twenty sentences are missing, two are of no page, and the title stays."""
    crawl, number = Crawl(0.3), 7
    page, copy = crawl.page(library, number), crawl.copy(library, number, where=where)
    before, after = (set(own_sentences(library, crawl, one)) for one in (page, copy))
    assert (len(after), len(after - before)) == (OWN - DROPPED, REPLACED)
    assert copy.title == page.title
    assert copy.url != page.url
    assert (copy.url.split("/")[2] == page.url.split("/")[2]) == (where == "same host")
    assert all((line in copy.text) == (where != "no template") for line in crawl.template(library, 0))
    assert copy == crawl.copy(library, number, where=where)


def test_chance_overlap_is_that_of_the_nearest_page():
    """It is the greatest similarity among all other pages, compared one by one."""
    library, size, sample = library_of(pages(40)), 900, range(0, 900, 90)
    found = chance_overlap(library, size, sample)
    crawl = Crawl(0.0)
    letters = [letters_of(crawl.page(library, number).text) for number in range(size)]
    grams = [{text[at : at + 5] for at in range(len(text) - 4)} for text in letters]
    for number, nearest in zip(sample, found.nearest, strict=True):
        others = (grams[other] for other in range(size) if other != number)
        most = max(len(grams[number] & other) / len(grams[number] | other) for other in others)
        # Pages that share no half, but some letters by chance, are not compared.
        assert most - 0.01 <= nearest <= most


def test_short_texts_have_their_length_and_titles(library):
    """Every text is another one, of exactly its letters; forms say which titles it has first and again."""
    texts = list(texts_of(library, 5))
    assert len(texts) == 5 * len(FORMS) * len(LENGTHS)
    assert all(len(letters_of(text.text)) == text.letters for text in texts)
    assert len({text.text for text in texts}) == len(texts)
    titles = {text.form: (text.title, text.title_again) for text in texts}
    assert titles["no title"] == ("", "")
    assert titles["title lost"][0] != ""
    assert titles["title lost"][1] == ""
    assert titles["same title"][0] == titles["same title"][1] != ""
    assert titles["other title"][0] != titles["other title"][1] != ""


def test_texts_of_one_form_begin_alike(library):
    """Texts of one form and length have three of five letters in common."""
    mine = [letters_of(text.text) for text in texts_of(library, 5) if (text.form, text.letters) == ("one form", 500)]
    assert len({text[:300] for text in mine}) == 1
    assert len({text[300:320] for text in mine}) == 5
