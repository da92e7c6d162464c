"""Tests for folding: one form for texts that read the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.normalise import body_hash, fold, fold_slowly, letters, without_headline


@given(st.text())
def test_the_table_folds_like_the_definition(text: str) -> None:
    """The fast way and the defining way give the same string for any text."""
    assert fold(text) == fold_slowly(text)


@given(st.text(alphabet="あが한글e\u0301\u3099ｶﾞABｃ１２ \t\n\u3000中國乾隆後髮发ßŒ"))
def test_the_table_knows_characters_that_combine(text: str) -> None:
    """Marks, jamo and half-width kana, which join their neighbours, do not slip through the table."""
    assert fold(text) == fold_slowly(text)


def test_width_case_and_script_of_chinese_disappear() -> None:
    """Full-width letters, capitals and traditional characters fold to one form."""
    assert fold("ＡＢＣ１２３　國際新聞") == "abc123 国际新闻"


def test_white_space_runs_become_one_and_lines_stay() -> None:
    """Runs of spaces become one space, blank lines go, line breaks stay."""
    assert fold("  a \t b \n\n  c  ") == "a b\nc"


def test_lone_surrogates_can_be_folded() -> None:
    """A text that is not valid Unicode is folded like any other."""
    assert fold("a\ud800b") == fold_slowly("a\ud800b")


def test_letters_are_letters_and_digits_only() -> None:
    """Punctuation, spaces and emoji are not letters; rare characters of the upper planes are."""
    family, flag = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e8\U0001f1f3"
    assert letters(f"a, 中。3 {family}{flag}✅𠮷").tolist() == [ord("a"), ord("中"), ord("3"), ord("𠮷")]
    assert letters("").dtype == np.uint32


def test_equal_bodies_have_equal_hashes_whatever_their_line_breaks() -> None:
    """The hash of a body ignores white space, and nothing else."""
    assert body_hash("第一段 第二段") == body_hash("第一段\n第二段")
    assert body_hash("3.5") != body_hash("35")
    assert body_hash(" \n") is None


def test_a_headline_above_the_text_is_not_part_of_the_body() -> None:
    """The first line is removed only if it repeats the title, or the title without the site's name."""
    assert without_headline("大桥通车!\n正文。", "大桥通车") == "正文。"
    assert without_headline("bridge opens\ntext.", "bridge opens - the courier") == "text."
    assert without_headline("昨日大桥通车\n正文。", "大桥通车") == "昨日大桥通车\n正文。"
    assert without_headline("大桥通车", "大桥通车") == "大桥通车"
    assert without_headline("——\n正文。", "大桥通车") == "——\n正文。"


def test_every_character_of_the_first_plane_folds_as_defined() -> None:
    """The table and the definition fold every character alike, also in the blocks that the table skips."""
    for code in range(0x10000):
        assert fold(f"a{chr(code)}b") == fold_slowly(f"a{chr(code)}b")
