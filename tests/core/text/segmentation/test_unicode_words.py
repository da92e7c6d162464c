"""Tests for words of scripts with spaces, and for pairs of characters in the others."""

from dedup_service._native import cut_at_boundaries


def test_words_end_at_unicode_boundaries() -> None:
    """English, Korean, German and Arabic words are whole; apostrophes and decimals stay inside."""
    words = cut_at_boundaries("Don't pay 3.14 für 한국어 단어 الى المدرسه")
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
    assert cut_at_boundaries("これは") == ["これ", "れは"]
    assert cut_at_boundaries("ก") == ["ก"]
