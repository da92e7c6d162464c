"""Text to words, with their part of speech where a scheme asks for it.

Chinese, and text that mixes it with others, goes to a Chinese segmenter: rjieba by default, jieba as the
reference and fallback. Everything else is cut at Unicode word boundaries by the `regex` library; scripts
that write no spaces (Thai, Lao, Khmer, Burmese, kana) come out of that as single characters, which are
joined to overlapping pairs, since one character says too little.

All segments together give the text back, so a position in the list is a position in the text; the pairs
of unspaced scripts overlap and are the one exception.
Source: Unicode Standard Annex 29 (word boundaries); part-of-speech tags are jieba's (ICTCLAS style).
"""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from itertools import pairwise
from typing import Protocol

import regex

from dedup_service.core.errors import ConfigurationError

__all__ = [
    "SEGMENTERS",
    "ScriptSegmenter",
    "Segmenter",
    "UnicodeSegmenter",
    "chinese_segmenter",
    "parse_user_words",
    "segmenter_version",
]

SEGMENTERS = ("rjieba", "jieba")
UNKNOWN = "x"
USER_FREQUENCY = 100_000
# Plain ranges in `re`, which finds them ten times faster than properties in `regex`; the middle dot of
# foreign names in Chinese is no kana.
_HAN = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
KANA_SHARE = 5  # Japanese has at least one kana to five Chinese characters; a brand name in Chinese text does not
_BOUNDARY = regex.compile(r"(?w)\b")
_UNSPACED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hiragana}\p{Katakana}\p{Han}]+")


class Segmenter(Protocol):
    """Cuts a folded text."""

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        ...

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same with a part of speech each, `x` where none is known."""
        ...


class UnicodeSegmenter:
    """Words between Unicode word boundaries; unspaced scripts as overlapping pairs of characters."""

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        pieces = [piece for piece in _BOUNDARY.split(text) if piece]
        if _UNSPACED.search(text) is None:
            return pieces
        words: list[str] = []
        run = ""
        for word in pieces:
            if _UNSPACED.fullmatch(word):
                run += word
                continue
            words += [*_pairs(run), word]
            run = ""
        return words + _pairs(run)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same words, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]


class ScriptSegmenter:
    """Gives each text to the segmenter of its script."""

    def __init__(self, chinese: Segmenter, other: Segmenter) -> None:
        self._chinese = chinese
        self._other = other

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        return self._of(text).cut(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same with a part of speech each."""
        return self._of(text).tag(text)

    def _of(self, text: str) -> Segmenter:
        if _HAN.search(text) is None:
            return self._other
        japanese = _KANA.search(text) and KANA_SHARE * len(_KANA.findall(text)) >= len(_HAN.findall(text))
        return self._other if japanese else self._chinese


class _Rjieba:
    def __init__(self, user_words: Mapping[str, str]) -> None:
        import rjieba

        # The module's own segmenter is loaded already; another dictionary needs one of its own.
        self._jieba = rjieba.Jieba() if user_words else rjieba
        for word, tag in user_words.items():
            self._jieba.add_word(word, USER_FREQUENCY, tag)

    def cut(self, text: str) -> list[str]:
        words: list[str] = self._jieba.cut(text)
        return words

    def tag(self, text: str) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = self._jieba.tag(text)
        return pairs


class _Jieba:
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
    """Return the segmenter `name` (rjieba or jieba) with the words of a user's dictionary (word → tag)."""
    makers: dict[str, type[_Rjieba | _Jieba]] = {"rjieba": _Rjieba, "jieba": _Jieba}
    if name not in makers:
        raise ConfigurationError(f"the Chinese segmenter is one of {', '.join(SEGMENTERS)}, got {name!r}")
    return makers[name](user_words or {})


def segmenter_version(name: str) -> str:
    """Return `name` with its installed version: part of the space, since another dictionary cuts otherwise."""
    return f"{name} {version(name)}"


def parse_user_words(lines: Iterable[str]) -> dict[str, str]:
    """Return word → tag from lines in jieba's user dictionary format: `word [frequency] [tag]`."""
    words: dict[str, str] = {}
    for line in lines:
        word, *rest = line.split()[:3] or [""]
        if word:
            words[word] = next((field for field in rest if not field.isdigit()), UNKNOWN)
    return words


def _pairs(run: str) -> list[str]:
    return [run] if 0 < len(run) < 3 else [a + b for a, b in pairwise(run)]
