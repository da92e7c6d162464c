"""Tests for words of scripts with spaces, and for pairs of characters in the others."""

from dedup_service.core.text.segmentation.unicode_words import UnicodeSegmenter


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
