"""Tests for folding: one form for texts that read the same."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.normalise import (
    fold,
    fold_exactly,
    fold_slowly,
    letters,
    without_headline,
)


@given(st.text(alphabet="あが한글e\u0301\u3099ｶﾞABｃ１２ \t\n\u3000中國乾隆後髮发ßŒ"))
def test_the_table_knows_characters_that_combine(text: str) -> None:
    """Marks, jamo and half-width kana, which join their neighbours, do not slip through the table."""
    assert fold(text) == fold_slowly(text)


@given(st.text(alphabet="a中☀😀🏽\ufe0e\ufe0f\u200d\u034f\u180b國𝐀e\u0301\u1112\u1161 \n"))
def test_the_table_knows_what_may_stand_beside_emoji(text: str) -> None:
    """Selectors, joiners and tones of skin, at any place, are folded as the definition does."""
    assert fold(text) == fold_slowly(text)


@given(st.text(alphabet="12٣a⁺⁻²ⁿ₂½ "))
def test_exponents_and_fractions_are_found_as_by_looking_around(text: str) -> None:
    """An exponent has a sign before it; a fraction or an index is apart from a digit on either side."""
    marked = re.sub("(?<![⁺⁻])[⁺⁻]*[²ⁿ][⁺⁻²ⁿ]*", r"^\g<0>", text)
    apart = re.sub(r"(?<=\d)(?=[₂½])|(?<=[₂½])(?=\d)", " ", marked)
    assert fold_exactly(text)[1] == fold(apart)


def test_width_case_and_script_of_chinese_disappear() -> None:
    """Full-width letters, capitals and traditional characters fold to one form."""
    assert fold("ＡＢＣ１２３　國際新聞") == "abc123 国际新闻"


def test_white_space_runs_become_one_and_lines_stay() -> None:
    """Runs of spaces become one space, blank lines go, line breaks stay."""
    assert fold("  a \t b \n\n  c  ") == "a b\nc"


def test_letters_are_letters_and_digits_only() -> None:
    """Punctuation, spaces and emoji are not letters; rare characters of the upper planes are."""
    family, flag = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e8\U0001f1f3"
    assert letters(f"a, 中。3 {family}{flag}✅𠮷").tolist() == [ord("a"), ord("中"), ord("3"), ord("𠮷")]
    assert letters("").dtype == np.uint32


@pytest.mark.parametrize("word", ["लड़की", "কাল", "கால்", "ไข้", "ປ່າ", "កីឡា", "ကို", "བོད", "ދިވެހި"])
def test_vowel_signs_and_tones_that_are_always_written_are_letters(word: str) -> None:
    """Shingles of Hindi, Thai and their like see the vowels; nothing of a word is lost."""
    assert letters(fold(word)).tobytes().decode("utf-32-le") == fold(word)


def test_vowel_marks_that_writers_leave_out_are_no_letters() -> None:
    """Hebrew and Arabic with vowel marks have the letters of the text without them."""
    for written, plain in (("שָׁלוֹם", "שלום"), ("كَتَبَ", "كتب"), ("за́мок", "замок")):
        assert letters(fold(written)).tolist() == letters(fold(plain)).tolist()


@given(st.text(alphabet="a2 ²³⁻ⁿ₂½٣كَّـ…é\u0301國&;#x"))
def test_folding_exactly_also_folds(text: str) -> None:
    """The first of both texts is the folded one; the second is the same, unless folding drops something."""
    folded, exact = fold_exactly(text)
    assert folded == fold(text)
    assert exact == folded or set(text) & set("²³ⁿ₂½َّ")


def test_what_folding_drops_is_kept_for_equality() -> None:
    """Exponents are marked, a fraction is kept apart from the whole number before it, Arabic vowels stay."""
    assert fold_exactly("10² m, 10⁻³, 3½, 10₂") == ("102 m, 10−3, 31⁄2, 102", "10^2 m, 10^−3, 3 1⁄2, 10 2")
    assert fold_exactly("كَتَبَ أحمد") == ("كتب احمد", "كَتَبَ احمد")


def test_character_references_are_the_characters() -> None:
    """References that were escaped twice are replaced, once; what only looks like one stays."""
    assert fold("&ldquo;甲&#20057;&#x4e19;&rdquo;&nbsp;a&amp;b") == "“甲乙丙” a&b"
    assert fold("&amp;lt; at&t &unknown; &") == "&lt; at&t &unknown; &"


def test_a_headline_above_the_text_is_not_part_of_the_body() -> None:
    """The first line is removed only if it repeats the title, or the title without the site's name."""
    assert without_headline("大桥通车!\n正文。", "大桥通车") == "正文。"
    assert without_headline("bridge opens\ntext.", "bridge opens - the courier") == "text."
    assert without_headline("昨日大桥通车\n正文。", "大桥通车") == "昨日大桥通车\n正文。"
    assert without_headline("大桥通车", "大桥通车") == "大桥通车"
    assert without_headline("——\n正文。", "大桥通车") == "——\n正文。"


def test_every_character_that_the_table_knows_folds_as_defined() -> None:
    """The table and the definition fold every character alike, also in the blocks that the table skips."""
    for code in (*range(0x10000), *range(0x1F000, 0x20000)):
        assert fold(f"a{chr(code)}b") == fold_slowly(f"a{chr(code)}b")
