"""Operators on short texts: each makes its own change and no other."""

import random
from difflib import SequenceMatcher

import pytest

from benchmarks.quality.operators import HARMLESS, MEANINGFUL, OPERATORS, names_in
from benchmarks.quality.short_texts import PAIRS, pairs_of, texts_of
from dedup_service.core.page import Page
from dedup_service.core.text.normalise import fold

TEXTS = [
    "张伟3月14日在杭州宣布新厂将投资25亿元",
    "王芳：明年没有计划在成都建第二座车站",
    "李娜说，比赛会在南京举行，共有120名选手参加",
    "刘洋在上海获得冠军，全场3万名观众起立鼓掌",
]
BY_NAME = {operator.name: operator for operator in OPERATORS}


def pairs(name, count=200):
    """Return pairs of the operator `name` over TEXTS."""
    rng, names = random.Random(1), names_in(TEXTS)
    applied = (BY_NAME[name].apply(rng.choice(TEXTS), rng, names) for _ in range(count))
    return [pair for pair in applied if pair is not None]


@pytest.mark.parametrize("operator", MEANINGFUL, ids=lambda operator: operator.name)
def test_a_meaningful_change_survives_folding(operator):
    """No filter could tell texts apart that fold to the same."""
    found = pairs(operator.name)
    assert found
    assert all(fold(one) != fold(other) for one, other in found)


def test_operator_number_changes_one_digit_outside_dates():
    """The length stays, one digit differs, and the date is unchanged."""
    for one, other in pairs("number"):
        differing = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        assert len(differing) == 1
        assert one[differing[0]].isdigit()
        assert "3月14日" in other or "3月14日" not in one


def test_operator_date_adds_a_missing_date_to_both_texts():
    """Only the date differs, also in texts that had none."""
    for one, other in pairs("date"):
        kinds = {tag for tag, *_ in SequenceMatcher(None, one, other).get_opcodes()}
        assert "日" in one
        assert kinds <= {"equal", "replace", "insert", "delete"}
        assert [c for c in one if not c.isdigit()] == [c for c in other if not c.isdigit()]


def test_operator_name_replaces_a_name_by_another():
    """The names come from the texts themselves."""
    everyone = {name for names in names_in(TEXTS).values() for name in names}
    for one, other in pairs("name"):
        assert any(name in one and name not in other for name in everyone)
        assert any(name in other and name not in one for name in everyone)


def test_operator_negation_adds_or_removes_one_character():
    """A negation is inserted before a verb, or removed."""
    for one, other in pairs("negation"):
        assert abs(len(one) - len(other)) == 1
        longer, shorter = sorted((one, other), key=len, reverse=True)
        assert set("不没未") & set(longer)
        assert any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))


@pytest.mark.parametrize("name", ["emoji", "emoticon", "repost prefix"])
def test_additions_leave_the_text_unchanged(name):
    """The harmless additions change no character of the text."""
    for one, other in pairs(name):
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        assert {tag for tag, *_ in matcher.get_opcodes()} <= {"equal", "insert"}
        assert len(other) > len(one)


def test_operator_punctuation_keeps_letters_and_digits():
    """Only characters that are neither letters nor digits change."""
    for one, other in pairs("punctuation"):
        assert one != other
        assert [c for c in fold(one) if c.isalnum()] == [c for c in fold(other) if c.isalnum()]


def test_a_seed_gives_the_same_pairs():
    """A repeated measurement uses the same pairs."""
    names = names_in(TEXTS)
    for operator in (*MEANINGFUL, *HARMLESS):
        one, other = (list(pairs_of(TEXTS, operator, "headline", names, 3)) for _ in range(2))
        assert one == other
        assert len(one) in {0, PAIRS}


def test_short_texts_are_distinct_headlines():
    """A repeated headline gives one text, and the added sentence does not repeat the headline."""
    address = {"url": "https://a.example/", "canonical_url": "https://a.example/", "id": "a"}
    page = Page(**address, title="上海新车站今日启用通车", text="上海新车站今日启用通车。首班列车七点从新站台发出。")
    assert texts_of([page, page], "headline") == ["上海新车站今日启用通车"]
    assert texts_of([page], "headline and sentence") == ["上海新车站今日启用通车。首班列车七点从新站台发出。"]
