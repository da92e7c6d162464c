"""Chinese words with their part of speech: rjieba by default, jieba as the reference and fallback.

Both use the same dictionary and algorithm; rjieba is about fifty times as fast with part of speech.
Source: https://github.com/fxsjy/jieba, which also defines the tags (ICTCLAS style).
"""

from collections.abc import Iterable, Mapping

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation.segmenter import UNKNOWN, Segmenter

__all__ = ["SEGMENTERS", "chinese_segmenter", "parse_user_words"]

SEGMENTERS = ("rjieba", "jieba")
USER_FREQUENCY = 100_000
"""The frequency that every word of a user's dictionary gets, whatever the line says."""


class _Rjieba(Segmenter):
    def __init__(self, user_words: Mapping[str, str]) -> None:
        import rjieba

        # The module has a segmenter with the default dictionary; user words need another one.
        self._jieba = rjieba.Jieba() if user_words else rjieba
        for word, tag in user_words.items():
            self._jieba.add_word(word, USER_FREQUENCY, tag)

    def cut(self, text: str) -> list[str]:
        words: list[str] = self._jieba.cut(text)
        return words

    def tag(self, text: str) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = self._jieba.tag(text)
        return pairs


class _Jieba(Segmenter):
    def __init__(self, user_words: Mapping[str, str]) -> None:
        import logging

        import jieba
        import jieba.posseg

        jieba.setLogLevel(logging.WARNING)
        self._jieba = jieba.Tokenizer()
        self._tagger = jieba.posseg.POSTokenizer(self._jieba)
        for word, tag in user_words.items():
            self._jieba.add_word(word, USER_FREQUENCY, tag)
            self._tagger.word_tag_tab[word] = tag

    def cut(self, text: str) -> list[str]:
        return list(self._jieba.cut(text))

    def tag(self, text: str) -> list[tuple[str, str]]:
        return [(pair.word, pair.flag) for pair in self._tagger.cut(text)]


def chinese_segmenter(name: str, user_words: Mapping[str, str] | None = None) -> Segmenter:
    """Return the segmenter `name` (rjieba or jieba) with the words of a user's dictionary (word → tag).

    Raises ConfigurationError for another name.
    """
    makers: dict[str, type[_Rjieba | _Jieba]] = {"rjieba": _Rjieba, "jieba": _Jieba}
    if name not in makers:
        raise ConfigurationError(f"the Chinese segmenter is one of {', '.join(SEGMENTERS)}, got {name!r}")
    return makers[name](user_words or {})


def parse_user_words(lines: Iterable[str]) -> dict[str, str]:
    """Return word → tag from lines in the format of jieba's user dictionaries: `word [frequency] [tag]`."""
    words: dict[str, str] = {}
    for line in lines:
        word, *rest = line.split()[:3] or [""]
        if word:
            words[word] = next((field for field in rest if not field.isdigit()), UNKNOWN)
    return words
