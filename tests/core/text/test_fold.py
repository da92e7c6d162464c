"""Tests for folding: one form for texts that read the same, as a definition in plain Python has it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageText, fold
from tests.core.text.fold_oracle import folded


def letters(text: str) -> str:
    """The letters of a text."""
    return PageText("", text).letters


def exact(text: str) -> str:
    """A text folded without loss."""
    return PageText(text, "").exact[0]


@given(st.text(alphabet="あが한글e\u0301\u3099ｶﾞABｃ１２ \t\n\u3000中國乾隆後髮发ßŒ"))
def test_characters_that_combine_are_folded_as_defined(text: str) -> None:
    """Marks, jamo and half-width kana, which join their neighbours, do not slip through the table."""
    assert fold(text) == folded(text)


@given(st.text(alphabet="a中☀😀🏽\ufe0e\ufe0f\u200d\u034f\u180b國𝐀e\u0301\u1112\u1161 \n"))
def test_what_may_stand_beside_emoji_is_folded_as_defined(text: str) -> None:
    """Selectors, joiners and tones of skin, at any place."""
    assert fold(text) == folded(text)


@given(st.text(alphabet="a2 12٣⁺⁻²³ⁿ₂½①⑩⒈㋀㍘\u200bكَّـ…é\u0301國&;#x."))
def test_folding_without_loss_is_as_defined(text: str) -> None:
    """An exponent has a sign before it; two numbers that folding would join are apart."""
    assert (fold(text), exact(text)) == (folded(text), folded(text, exactly=True))


def test_width_case_and_script_of_chinese_disappear() -> None:
    """Full-width letters, capitals and traditional characters fold to one form."""
    assert fold("ＡＢＣ１２３　國際新聞") == "abc123 国际新闻"


def test_white_space_runs_become_one_and_lines_stay() -> None:
    """Runs of spaces become one space, blank lines go, line breaks stay."""
    assert fold("  a \t b \n\n  c  ") == "a b\nc"


def test_letters_are_letters_and_digits_only() -> None:
    """Punctuation, spaces and emoji are not letters; rare characters of the upper planes are."""
    family, flag = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e8\U0001f1f3"
    assert letters(f"a, 中。3 {family}{flag}✅𠮷") == "a中3𠮷"
    assert letters("") == ""


@pytest.mark.parametrize("word", ["लड़की", "কাল", "கால்", "ไข้", "ປ່າ", "កីឡា", "ကို", "བོད", "ދިވެހި"])
def test_vowel_signs_and_tones_that_are_always_written_are_letters(word: str) -> None:
    """Shingles of Hindi, Thai and their like see the vowels; nothing of a word is lost."""
    assert letters(word) == fold(word)


def test_vowel_marks_that_writers_leave_out_are_no_letters() -> None:
    """Hebrew and Arabic with vowel marks have the letters of the text without them."""
    for written, plain in (("שָׁלוֹם", "שלום"), ("كَتَبَ", "كتب"), ("за́мок", "замок")):
        assert letters(written) == letters(plain)


def test_what_folding_drops_is_kept_for_equality() -> None:
    """Exponents are marked, a fraction is kept apart from the whole number before it, Arabic vowels stay."""
    assert fold("10² m, 10⁻³, 3½, 10₂") == "102 m, 10−3, 31⁄2, 102"
    assert exact("10² m, 10⁻³, 3½, 10₂") == "10^2 m, 10^−3, 3 1⁄2, 10 2"
    assert (fold("كَتَبَ أحمد"), exact("كَتَبَ أحمد")) == ("كتب احمد", "كَتَبَ احمد")


def test_character_references_are_the_characters() -> None:
    """References that were escaped twice are replaced, once; what only looks like one stays."""
    assert fold("&ldquo;甲&#20057;&#x4e19;&rdquo;&nbsp;a&amp;b") == "“甲乙丙” a&b"
    assert fold("&amp;lt; at&t &unknown; &") == "&lt; at&t &unknown; &"


def test_a_headline_above_the_text_is_not_part_of_the_body() -> None:
    """The first line is removed only if it repeats the title, or the title without the site's name."""
    for title, body, bare in (
        ("大桥通车", "大桥通车!\n正文。", "正文。"),
        ("bridge opens - the courier", "bridge opens\ntext.", "text."),
        ("大桥通车", "昨日大桥通车\n正文。", "昨日大桥通车\n正文。"),
        ("大桥通车", "大桥通车", "大桥通车"),
        ("大桥通车", "——\n正文。", "——\n正文。"),
    ):
        assert PageText(title, body).body == bare


def test_every_known_character_folds_as_defined() -> None:
    """Also in the blocks that the table leaves alone; characters newer than the interpreter are not asked."""
    for code in (*range(0x10000), *range(0x1F000, 0x20000)):
        if unicodedata.category(chr(code)) != "Cn":
            assert fold(f"a{chr(code)}b") == folded(f"a{chr(code)}b")
