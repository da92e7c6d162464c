"""Tests for the numbers of a text: value, sign and unit."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import fold
from dedup_service.core.evidence.packed import MAX_NUMBERS, Evidence
from tests.made_evidence import evidence_of


def evidence(text: str) -> Evidence:
    """Return the evidence of a text."""
    return Evidence(evidence_of(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("二〇〇八年", "2008年"),
        ("二零零八年八月八日", "2008年8月8日"),
        ("2008-08-15", "2008年8月15日"),
        ("2008.8.15", "2008年08月15日"),
        ("十五人", "15人"),
        ("十五人", "15 人"),
        ("一百二十米", "120米"),
        ("一百零五米", "105米"),
        ("三亿五千万元", "35000万元"),
        ("3.5亿元", "350000000元"),
        ("一万二千元", "1.2万元"),
        ("一万二", "12000"),
        ("两百人", "200人"),
        ("第三届", "第3届"),
        ("百分之十五", "15%"),
        ("1,250,000.5 tons", "1250000.5 tons"),
        ("5 million men", "5,000,000 men"),
        ("１２％", "12%"),
        ("１２℃", "12°C"),
        ("$5 million", "$5,000,000"),
        ("–12℃", "−12℃"),
        ("३.५ किलोमीटर", "3.5 किलोमीटर"),
    ],
)
def test_ways_to_write_one_number(one: str, other: str) -> None:
    """Value and unit are the same."""
    assert evidence(one).numbers == evidence(other).numbers != ()
    assert evidence(one).figures == evidence(other).figures


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5%", "15%"),
        ("-12℃", "+12℃"),
        ("−12", "12"),
        ("$500", "€500"),
        ("500 €", "500 £"),
        ("eur 500", "usd 500"),
        ("US$500", "A$500"),
        ("12℃", "12℉"),
        ("5 km", "5 m"),
        ("5 million", "5 billion"),
        ("15万元", "15亿元"),
        ("3公里", "3公斤"),
        ("1,5", "15"),
        ("1.50", "1.5"),
        ("007", "7"),
        ("二〇〇八年", "二〇〇九年"),
        ("三点五", "三点六"),
        ("第三届", "第四届"),
        ("百分之十五", "十五"),
        ("3 किलो", "3 कलो"),
    ],
)
def test_what_makes_another_figure(one: str, other: str) -> None:
    """Another value, sign, unit or currency gives another digest."""
    assert evidence(one).figures != evidence(other).figures


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("3.5% 于 2026年", 2),
        ("1,250,000 元", 1),
        ("一个人", 0),
        ("第一个", 1),
        ("v1.2.3.", 3),
        ("1,2,3", 3),
        ("5-3", 2),
    ],
)
def test_what_is_a_number(text: str, count: int) -> None:
    """Points and separators of thousands belong to a number; most single Chinese numerals are words."""
    assert evidence(text).number_count == count


def test_a_hyphen_between_words_or_digits_is_no_sign() -> None:
    """Ranges, dates and names have hyphens before numbers."""
    assert evidence("5-12").figures == evidence("5–12").figures == evidence("5, 12").figures
    assert evidence("a-12").figures == evidence("a–12").figures == evidence("a 12").figures
    assert evidence("(-12) -12").figures == evidence("−12 −12").figures != evidence("12 12").figures


@given(
    st.lists(st.tuples(st.decimals(0, 10**9, places=2), st.sampled_from(["kg", "%", "€", ""])), max_size=20),
    st.randoms(),
)
def test_numbers_of_a_list(written: list[tuple[object, str]], chosen: random.Random) -> None:
    """Decimal numbers with units are as many as a pattern finds; their order does not matter."""
    items = [f"{number} {unit}" for number, unit in written]
    text, other = "; ".join(items), "; ".join(chosen.sample(items, len(items)))
    found = [match for match in re.findall(r"([0-9.]+)(?: (kg|%|€))?", fold(text)) if match[0] != "."]
    assert evidence(text).number_count == len(found)
    assert evidence(text).figures == evidence(other).figures


@given(st.integers(10, 99_999_999))
def test_chinese_numerals_have_the_value_of_digits(number: int) -> None:
    """Written by units, up to ten thousand times ten thousand; a single numeral is a word."""
    assert evidence(chinese(number) + "吨").figures == evidence(f"{number}吨").figures


def test_a_sample_is_the_same_part_of_both() -> None:
    """The sample is the smallest hashes, so large multisets with the same members have the same one."""
    items = [f"{number} 吨" for number in range(300)] * 2
    found, turned = evidence(" ".join(items)), evidence(" ".join(reversed(items)))
    assert (len(found.numbers), found.number_count) == (MAX_NUMBERS, 600)
    assert found.numbers == turned.numbers == tuple(sorted(found.numbers))
    assert found.figures == turned.figures


def chinese(number: int) -> str:
    """Return a number below 10**8 in Chinese numerals."""
    if number >= 10**4:
        rest = number % 10**4
        return chinese(number // 10**4) + "万" + ("零" if 0 < rest < 1000 else "") + (chinese(rest) if rest else "")
    written, zero = "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // power % 10
        if digit:
            written += ("零" if zero and written else "") + "〇一二三四五六七八九"[digit] + name
            zero = False
        else:
            zero = True
    return written
