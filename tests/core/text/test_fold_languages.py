"""Tests for folding by language: invisible characters, digits, Arabic, jamo, kana, Thai vowels."""

import unicodedata

import pytest

from dedup_service._native import fold


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Do\u00adnau\u00addampf", "donaudampf"),
        ("กรุง\u200bเทพ", "กรุงเทพ"),
        ("\ufeff新闻\ufe0f", "新闻"),
        ("\u200fخبر\u200e", "خبر"),
    ],
)
def test_invisible_characters_are_removed(written: str, plain: str) -> None:
    """Soft hyphens, zero-width spaces, direction marks and variation selectors leave no trace."""
    assert fold(written) == plain


def test_digits_of_all_scripts_are_the_same_digits() -> None:
    """A number says the same in Arabic, Persian, Thai, Devanagari and full-width digits."""
    assert fold("٢٠٢٥ ۲۰۲۵ ๒๐๒๕ २०२५ ２０２５") == "2025 2025 2025 2025 2025"


def test_arabic_variants_are_one_form() -> None:
    """Stretching, vowel marks, the forms of alef, final yeh and teh marbuta are typography."""
    assert fold("الـعـربـيّة أُخرى إلى آخر") == fold("العربيه اخري الي اخر")
    assert fold("ﷲ ﻻ") == fold("الله لا")


def test_korean_jamo_and_half_width_kana_are_composed() -> None:
    """Decomposed Hangul and half-width katakana with their marks fold to the usual characters."""
    assert fold(unicodedata.normalize("NFD", "한국어 뉴스")) == "한국어 뉴스"
    assert fold("ﾊﾟｿｺﾝ ｶﾞｽ") == "パソコン ガス"


def test_thai_sara_am_has_one_form() -> None:
    """Written as one character or as two, with a tone mark before or between, sara am is the same."""
    assert fold("น้ำ") == fold("น้ํา")
