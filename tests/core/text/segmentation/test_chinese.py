"""Chinese words, against jieba itself."""

import logging
import random
from collections.abc import Iterator
from functools import cache

import jieba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import Segmenter, fold
from dedup_service.core.features.words import parse_user_words
from dedup_service.runtime.jieba_dictionary import jieba_folder

CHINESE = "记者昨日从市交通局获悉，跨江大桥将于下月通车，届时两岸车程缩短一半。"
USER_WORDS = {"近重复网页": "n", "双筛": "x", "跨江": "v", "c++": "x", "a b": "x", "的": "u", "𠮷野家": "nt"} | {
    "gpt模型": "x",
    "云计算平台": "nz",
    "ai芯片": "x",
}
"""One dictionary for all tests: each takes seconds to load."""
PIECES = [
    *("杭州西湖区", "龘靐齉爩", "1.8t", "u-2r", "002431.sz", "3.5%", "%", "..", "a.b.1", "\r\n", "\r", "　", "𠮷"),
]
USER_FREQUENCY = 100_000
"""The frequency that every word of a user gets."""
WORDS = [
    *"的一是不了在人有我他这中大来上国",
    *USER_WORDS,
    *PIECES,
    "中华人民共和国",
    "云计算",
    "B超",
    "T恤",
    "ab12",
    "-",
    "&#",
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), max_size=30)


@cache
def reference() -> jieba.Tokenizer:
    """jieba, with a user's words."""
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.initialize()
    for word, tag in USER_WORDS.items():
        tokenizer.add_word(word, USER_FREQUENCY, tag)
    return tokenizer


@cache
def segmenter() -> Segmenter:
    """Ours, with the same words."""
    return Segmenter(jieba_folder(), user_words=list(USER_WORDS))


@pytest.fixture(autouse=True, scope="module")
def freed() -> Iterator[None]:
    """Free the dictionaries, of which each takes 100 MB, after the last test."""
    yield
    reference.cache_clear()
    segmenter.cache_clear()


@given(parts=TEXTS)
def test_words_are_those_of_jieba(parts: list[str]) -> None:
    """Of words, unknown letters, numbers, Latin words, lines and letters beyond the first plane, in any order."""
    text = "".join(parts)
    assert segmenter().cut_chinese(text) == list(reference().cut(text))


def test_words_of_long_sentences_are_those_of_jieba() -> None:
    """Sentences of frequent and rare words, as long as pages."""
    chosen = random.Random(3)
    known = [word for word in reference().FREQ if word.strip()]
    for _ in range(40):
        text = "".join(chosen.choice(known)[: chosen.randrange(1, 9)] for _ in range(400))
        assert segmenter().cut_chinese(text) == list(reference().cut(text))


def test_no_letter_is_lost() -> None:
    """The pieces are the text, and an empty text has none."""
    assert "".join(segmenter().cut_chinese(CHINESE)) == CHINESE
    assert segmenter().cut_chinese("") == []


def test_words_of_a_user_dictionary_are_folded_as_texts_are() -> None:
    """Capital letters, traditional script, full width and the byte order mark of a file would match no text."""
    lines = ["\ufeff近重复网页 100 n", "", "GPT模型", "雲計算平臺 nz", "ＡＩ芯片", "\ufeff"]
    words = parse_user_words(lines)
    assert words == {"近重复网页": "n", "gpt模型": "x", "云计算平台": "nz", "ai芯片": "x"}
    assert words.items() <= USER_WORDS.items()
    assert segmenter().cut_chinese(fold("GPT模型与雲計算平臺，AI芯片")) == [
        "gpt模型",
        "与",
        "云计算平台",
        ",",
        "ai芯片",
    ]
