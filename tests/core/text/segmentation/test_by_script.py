"""Tests for the choice of a segmenter by script."""

from functools import cache

import pytest

from dedup_service._native import Segmenter, is_chinese
from dedup_service.runtime.jieba_dictionary import jieba_folder


@cache
def segmenter() -> Segmenter:
    """Cuts as pages are cut; its dictionary is not read before the first test."""
    return Segmenter(jieba_folder())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("openai的发布会 live", "发布会"),
        ("新しい駅は東京です", "東京"),
        ("中国网络公司の新产品发布会在北京举行", "发布会"),
    ],
)
def test_chinese_and_mixed_text_is_cut_into_words(text: str, word: str) -> None:
    """Chinese with English or a Japanese brand name is cut as Chinese, and Japanese is not."""
    assert word in segmenter().cut(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("北 미사일 발사에 대통령은 회의를 열었다", "미사일"),
        ("der bürgermeister von 北京 sprach über die größe der städtischen häfen und über züge", "bürgermeister"),
        ("زار الرئيس مدينة 北京 يوم الاثنين", "الرئيس"),
        ("мэр города 北京 приехал вчера", "города"),
    ],
)
def test_a_chinese_name_does_not_make_a_text_chinese(text: str, word: str) -> None:
    """The words of a page in another script stay whole if it names something in Chinese."""
    assert word in segmenter().cut(text)


def test_thai_with_a_chinese_name_stays_thai() -> None:
    """Thai beside a Chinese name is not cut into single letters."""
    assert all(len(word) > 1 for word in segmenter().cut("กรุงเทพกับ北京"))


def test_a_japanese_page_may_have_a_headline_without_kana() -> None:
    """A text of Han alone is Chinese, unless its page states Japanese."""
    assert is_chinese("東京都知事選挙")
    assert not is_chinese("東京都知事選挙", "ja-JP")


def test_a_chinese_page_may_have_a_headline_that_is_mostly_russian() -> None:
    """Another script may have more letters than Han if the page states that it is Chinese."""
    assert is_chinese("винторез步枪简介", "zh-CN")
    assert not is_chinese("винторез步枪简介")


@pytest.mark.parametrize(
    ("text", "chinese"),
    [("中1é😀" + "a" * 18, True), ("中" + "a" * 20, False), ("𠮷", True), ("カな中", False), ("", False)],
)
def test_letters_are_counted_by_script(text: str, chinese: bool) -> None:
    """Digits, punctuation and emoji are not letters; Han beyond the first plane is Han."""
    assert is_chinese(text) == chinese
