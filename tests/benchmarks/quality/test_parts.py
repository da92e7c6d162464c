"""The parts on a small folder of our own pages: their counts are exact."""

import json
from itertools import product

import numpy as np
import pytest

from benchmarks.quality import baselines, channels, profiles
from benchmarks.quality.channels import CELLS
from benchmarks.quality.corpora import Corpora
from benchmarks.quality.estimator import Estimates
from benchmarks.quality.parts import Part, is_cached, result
from benchmarks.quality.profiles import Profiles
from benchmarks.quality.short_texts import FORMS, ShortTextScore
from benchmarks.quality.store import Store
from benchmarks.quality.systems import TaskScore
from benchmarks.quality.tables import TABLES
from benchmarks.quality.workspace import Workspace
from dedup_service.core.evaluation.scoring import Evaluation, Share
from dedup_service.core.rules.profiles import PROFILES

ARTICLES = """
市图书馆新馆星期六向读者开放。新馆位于河东路，共有五层，藏书四十万册。读者可以凭身份证办理借书卡，每次最多借十本。馆长说，儿童阅览室设在一层，周末有人讲故事。
一场大雪使山区的公路中断了两天。养路工人清理了四十公里路面，星期三下午恢复通车。当地小学停课一天，老师在网上给学生布置了作业。村民用拖拉机把牛奶送到镇上。
今年的苹果比去年早熟了一个星期。果农说，春天雨水足，夏天日照长，果子又大又甜。合作社在村口建了冷库，可以存放两千吨。第一批苹果已经装车运往南方，价格与去年持平。
长江上的新渡船昨天试航，两岸往来只要八分钟。渡船用电池驱动，充满一次能跑六趟，船上可以放二十辆自行车。渡口重新铺了路面，候船室装了暖气。票价不变，老人和孩子免费。
""".split()  # noqa: SIM905 - one text a line


def write(path, rows):
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with four articles and a copy of each, with truth, pairs and HTML."""
    folder = tmp_path_factory.mktemp("data")
    texts = [*ARTICLES, *ARTICLES]
    pages = [
        {"id": f"p{n}", "url": f"https://a.example/{n}", "title": "", "text": text, "lang": "zh"}
        for n, text in enumerate(texts)
    ]
    original = {"duplicate_of": None, "operator": "unrelated", "strength": None}
    copies = [{"duplicate_of": f"p{n}", "operator": "exact", "strength": "S1"} for n in range(4)]
    truth = [{"id": f"p{n}", "group": f"g{n % 4}", **row} for n, row in enumerate([*[original] * 4, *copies])]
    pairs = [
        {"a": f"p{a}", "b": f"p{b}", "label": "dup" if b == a + 4 else "not", "kind": kind}
        for (a, b), kind in zip(product(range(4), range(4, 8)), ["nat_D", "nat_N", "nat_R", "neg_law"] * 4, strict=True)
    ]
    write(folder / "stream/pages.jsonl", pages)
    write(folder / "stream/truth.jsonl", truth)
    write(
        folder / "stream/unrelated30k.jsonl",
        [{"id": f"p{n}.0", "of": f"p{n}", "start": 0, "end": 90} for n in range(4)],
    )
    write(folder / "pairs/pages.jsonl", pages)
    write(folder / "pairs/pairs.jsonl", pairs)
    write(folder / "natural/pages.jsonl", pages)
    write(folder / "natural/pairs.jsonl", [*pairs[:-1], {**pairs[-1], "label": "grey", "kind": "nat_P"}])
    write(folder / "html/html.jsonl", [{**page, "html_path": f"html/{page['id']}.html"} for page in pages])
    write(folder / "html/pairs.jsonl", pairs)
    for page in pages:
        body = f"<body><article><p>{page['text']}</p></article></body>"
        html = f"<html lang=zh><head><title>新闻</title></head>{body}</html>"
        path = folder / "html" / "html" / f"{page['id']}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(html, encoding="utf-8")
    return Workspace(Corpora(folder), Store(folder / "cache"), processes=1)


def test_every_profile_finds_the_copies_and_nothing_else(workspace):
    """There are four positives over both halves, also for pairs; no piece is called a duplicate of another page's."""
    found = profiles.compute(workspace)
    for row in found.rows:
        assert sum(half.right for half in row.by_half) == (3 if row.task == "natural" else 4), (row.system, row.task)
        assert sum(half.wrong for half in row.by_half) == 0, (row.system, row.task)
    assert {name: foreign for name, (foreign, _) in found.pieces.items()} == dict.fromkeys(PROFILES, Share(0, 4))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # jieba does not close its table
def test_every_compared_system_finds_exact_copies_on_every_task(workspace):
    """Each system finds the four exact copies and confuses no articles."""
    rows = baselines.compute(workspace)
    assert {(row.task) for row in rows} == {"stream", "pairs", "html", "natural"}
    for row in rows:
        if row.best and "seed-java" not in row.system:
            right, wrong = (sum(getattr(half, name) for half in row.by_half) for name in ("right", "wrong"))
            assert (right, wrong) == (3 if row.task == "natural" else 4, 0), (row.system, row.task)


@pytest.mark.parametrize("place", ["natural", "../natural"])
def test_natural_pairs_are_found_in_the_folder_or_beside_it(tmp_path, place):
    """The data unpacks as two folders beside each other; both places are found, and their files are in the digest."""
    folder = tmp_path / "dev"
    folder.mkdir()
    assert Corpora(folder).tasks == ("stream", "pairs", "html")
    write(folder / place / "pairs.jsonl", [{"a": "x", "b": "y", "label": "dup", "kind": "nat_D"}])
    assert Corpora(folder).tasks == ("stream", "pairs", "html", "natural")
    assert [pair.a for pair in Corpora(folder).pairs_of("natural")] == ["x"]
    assert [path.name for path in Corpora(folder).files()] == ["pairs.jsonl"]


def test_missing_natural_pairs_are_named(tmp_path):
    """Who asks for them hears where they were looked for."""
    with pytest.raises(FileNotFoundError, match="no folder natural/"):
        Corpora(tmp_path / "dev").pairs_of("natural")


def test_the_table_of_natural_pairs_counts_grey_pairs_of_both_halves():
    """Scores are of half 1, flagged grey pairs of half 1 and of both halves; without the data it says so."""
    halves = tuple(
        Evaluation(3, 1, 1, {"kind nat_D": Share(3, 4)}, {}, {"kind nat_P": share}, np.ones((1, 3), np.int64))
        for share in (Share(2, 10), Share(1, 5))
    )
    row = TaskScore("balanced", "natural", 0.0, "", True, halves)
    found = {"profiles": Profiles([row], {}, {}), "baselines": []}
    assert TABLES["natural"].make(found).splitlines()[-1].endswith("| 1 of 5 | 3 of 15 |")
    assert "missing" in TABLES["natural"].make({"profiles": Profiles([], {}, {}), "baselines": []})


def test_keys_find_every_copy(workspace):
    """Every copy is among the candidates of the keys, and the rule table accepts no other."""
    found = {channel.name: channel for channel in channels.compute(workspace)}
    cells = found[CELLS]
    assert (cells.after.wrong, cells.after.missed) == (0, 0)
    assert cells.us_a_page > 0
    assert found[f"{CELLS}, body and words, k = 3"].candidates >= cells.candidates


def test_a_part_is_cached_by_its_arguments(workspace, monkeypatch):
    """Figures of other sizes are other figures."""
    part = Part(lambda _, sizes=(1, 2): sum(sizes), ("few_words",))
    monkeypatch.setattr("benchmarks.quality.parts.PARTS", {"few-words": part})
    assert (result(workspace, "few-words"), result(workspace, "few-words", (4, 5))) == (3, 9)
    assert is_cached(workspace, "few-words", (4, 5))
    assert not is_cached(workspace, "few-words", (4, 6))


def test_tables_show_counts():
    """Shares are shown as counts, and length classes without pairs are omitted."""
    shares = [
        ShortTextScore("number", harmless=False, form=form, half=half, share=Share(1, 2000))
        for form in FORMS
        for half in (0, 1)
    ]
    assert TABLES["short"].make({"short": shares}).splitlines()[-1] == "| number | 0 |" + " 1 of 2,000 |" * 4
    found = Estimates(np.array([200, 300]), np.array([0.5, 0.7]), np.array([0.52, 0.7]), 2, {"pairs": (2, 0)})
    lines = TABLES["estimator"].make({"estimator": found}).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "| **all** | 2 | 0.0100 | 0.0100 | 0.0198 | 0.0200 |"
