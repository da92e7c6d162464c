"""Tests for words of Japanese, Thai and similar scripts, if ICU is installed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import fold
from dedup_service.core.text.icu_words import icu_words

pytest.importorskip("icu4py", reason="the extra `languages` is not installed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京でパソコンが売れる", ["東京", "で", "パソコン", "が", "売れる"]),
        ("ทำงานที่กรุงเทพ", ["ทำงาน", "ที่", "กรุงเทพ"]),
        ("北 미사일 발사", ["北", " ", "미사일", " ", "발사"]),
    ],
)
def test_words_come_from_the_dictionaries(text: str, words: list[str]) -> None:
    """Text in scripts without spaces is cut into words; words of other scripts stay whole."""
    assert icu_words(fold(text)) == [fold(word) or " " for word in words]


def test_vowels_that_folding_decomposes_do_not_break_words() -> None:
    """Thai `am`, two characters after folding, is one for the dictionary, and two again in the words."""
    folded = fold("น้ำท่วม")
    words = icu_words(folded)
    assert words[0] == fold("น้ำ")
    assert "".join(words) == folded


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_the_words_together_are_the_text(text: str) -> None:
    """No character of any folded text is lost or added."""
    folded = fold(text)
    assert "".join(icu_words(folded)) == folded
