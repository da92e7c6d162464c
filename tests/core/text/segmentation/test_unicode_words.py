"""Tests for words of scripts with spaces, and for pairs of characters in the others."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.segmentation import UnicodeSegmenter


def test_words_end_at_unicode_boundaries() -> None:
    """English, Korean, German and Arabic words are whole; apostrophes and decimals stay inside."""
    words = UnicodeSegmenter().cut("Don't pay 3.14 für 한국어 단어 الى المدرسه")
    assert [word for word in words if word.strip()] == [
        "Don't",
        "pay",
        "3.14",
        "für",
        "한국어",
        "단어",
        "الى",
        "المدرسه",
    ]


def test_unspaced_scripts_become_pairs() -> None:
    """Thai and kana text, without spaces, becomes overlapping pairs of characters."""
    assert UnicodeSegmenter().cut("これは") == ["これ", "れは"]
    assert UnicodeSegmenter().cut("ก") == ["ก"]


@given(st.text())
def test_any_text_can_be_cut(text: str) -> None:
    """No text raises, no word is empty, and a text with letters has words, all of them from it."""
    words = UnicodeSegmenter().cut(text)
    assert all(words)
    assert all(word in text for word in words)
    assert words or not any(letter.isalpha() for letter in text)
