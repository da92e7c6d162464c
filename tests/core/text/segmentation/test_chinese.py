"""Tests for the Chinese segmenters, rjieba and jieba, and for users' dictionaries."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation import chinese_segmenter, parse_user_words, segmenter_version

CHINESE = "记者昨日从市交通局获悉，跨江大桥将于下月通车，届时两岸车程缩短一半。"


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_both_segmenters_cut_the_same_words(name: str) -> None:
    """Both cut plain news prose into the same words, and no character is lost."""
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
def test_a_user_dictionary_is_used(name: str) -> None:
    """A word of the user's dictionary is one word, with its tag."""
    segmenter = chinese_segmenter(name, parse_user_words(["近重复网页 100 n", "", "双筛"]))
    assert "近重复网页" in segmenter.cut("近重复网页检测")
    assert ("近重复网页", "n") in segmenter.tag("近重复网页检测")


def test_an_unknown_segmenter_is_refused_by_name() -> None:
    """The error names the value and the choices."""
    with pytest.raises(ConfigurationError, match="rjieba, jieba, got 'ictclas'"):
        chinese_segmenter("ictclas")


def test_the_version_is_named() -> None:
    """The version tells one dictionary from another, so it is part of the space."""
    assert segmenter_version("rjieba").startswith("rjieba 0.")
