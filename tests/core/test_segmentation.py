"""Segmentation: the right segmenter for each script, and users' dictionaries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.segmentation import (
    ScriptSegmenter,
    UnicodeSegmenter,
    chinese_segmenter,
    parse_user_words,
    segmenter_version,
)

CHINESE = "记者昨日从市交通局获悉，跨江大桥将于下月通车，届时两岸车程缩短一半。"


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_both_segmenters_cut_the_same_words(name: str) -> None:
    """Rjieba and its reference agree on plain news prose and lose no character."""
    words = chinese_segmenter(name).cut(CHINESE)
    assert "".join(words) == CHINESE
    assert words == chinese_segmenter("jieba").cut(CHINESE)


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_tags_name_nouns_and_verbs(name: str) -> None:
    """Each word comes with its part of speech."""
    tags = dict(chinese_segmenter(name).tag("记者采访市长"))
    assert tags["记者"].startswith("n")
    assert tags["采访"].startswith("v")


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_a_user_dictionary_is_honoured(name: str) -> None:
    """A word of the user's own dictionary is one word, with its tag."""
    segmenter = chinese_segmenter(name, parse_user_words(["近重复网页 100 n", "", "双筛"]))
    assert "近重复网页" in segmenter.cut("近重复网页检测")
    assert ("近重复网页", "n") in segmenter.tag("近重复网页检测")


def test_another_scripts_words_end_at_unicode_boundaries() -> None:
    """English, Korean and German words are whole; apostrophes and decimals stay inside."""
    words = UnicodeSegmenter().cut("Don't pay 3.14 für 한국어 단어")
    assert [word for word in words if word.strip()] == ["Don't", "pay", "3.14", "für", "한국어", "단어"]


def test_unspaced_scripts_become_pairs() -> None:
    """Thai and kana text, which has no spaces, becomes overlapping pairs of characters."""
    assert UnicodeSegmenter().cut("これは") == ["これ", "れは"]
    assert UnicodeSegmenter().cut("ก") == ["ก"]


@given(st.text())
def test_any_text_can_be_cut(text: str) -> None:
    """No text breaks the segmenter, and white space alone gives no word."""
    assert all(UnicodeSegmenter().cut(text)) or not text


def test_text_with_han_goes_to_the_chinese_segmenter() -> None:
    """Chinese mixed with English is cut by the Chinese segmenter, Japanese is not."""
    segmenter = ScriptSegmenter(chinese_segmenter("rjieba"), UnicodeSegmenter())
    assert "发布会" in segmenter.cut("OpenAI的发布会 live")
    assert "東京" in segmenter.cut("東京です")[0]


def test_an_unknown_segmenter_is_refused_by_name() -> None:
    """The error names the value and the choices."""
    with pytest.raises(ConfigurationError, match="rjieba, jieba, got 'ictclas'"):
        chinese_segmenter("ictclas")


def test_the_version_is_named() -> None:
    """The space can tell one dictionary from another."""
    assert segmenter_version("rjieba").startswith("rjieba 0.")
