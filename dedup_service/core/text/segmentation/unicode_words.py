"""Words between Unicode word boundaries: right for scripts that write spaces, and the fallback for those that do not.

English, German, Korean, Arabic and every other spaced script: a word is what stands between two boundaries, inflected
and compound as it is written. Scripts that write no spaces (Thai, Lao, Khmer, Burmese, kana) come out of that as
single characters, which are joined to overlapping pairs, since one character says too little; `icu_words` has words
for them.

All segments together give the text back; the pairs overlap and are the one exception.
Source: Unicode Standard Annex 29 (word boundaries), by the `regex` library.

Words of scripts that write no spaces, by ICU's dictionaries: Japanese, Thai, Lao, Khmer, Burmese.

An optional library, `icu4py`: it brings ICU and its dictionaries (15 MB). Text without such a script goes to the
segmenter for spaced scripts, so that its words are the same with the library and without.
Source: Unicode Standard Annex 29; https://unicode-org.github.io/icu/userguide/boundaryanalysis/
"""

import re
from importlib import import_module
from itertools import pairwise

import regex

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation.segmenter import UNKNOWN, Segmenter

__all__ = ["IcuSegmenter", "UnicodeSegmenter"]

_BOUNDARY = regex.compile(r"(?w)\b")
_UNSPACED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hiragana}\p{Katakana}\p{Han}]+")


class UnicodeSegmenter(Segmenter):
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


def _pairs(run: str) -> list[str]:
    return [run] if 0 < len(run) < 3 else [a + b for a, b in pairwise(run)]


_LOCALE = "root"  # the dictionaries are chosen by script, and are the same for every locale
# Thai, Lao, Burmese, Khmer, kana, Han. Plain ranges in `re`, ten times as fast as properties in `regex`.
_ICU_SCRIPTS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)
# Folding (NFKC) takes these vowels of Thai and Lao apart; the dictionaries have them whole.
_APART, _WHOLE = ("\u0e4d\u0e32", "\u0ecd\u0eb2"), ("\u0e33", "\u0eb3")


class IcuSegmenter(Segmenter):
    """Cuts text that holds an unspaced script by ICU's dictionaries, and leaves other text to `spaced`."""

    def __init__(self, spaced: Segmenter) -> None:
        try:
            self._breaker = import_module("icu4py.breakers").WordBreaker
        except ImportError as error:
            raise ConfigurationError(
                "words of Japanese and Thai need icu4py, which is not installed: pip install 'twinsieve[languages]'"
            ) from error
        self._spaced = spaced

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        if _ICU_SCRIPTS.search(text) is None:
            return self._spaced.cut(text)
        for apart, whole in zip(_APART, _WHOLE, strict=True):
            if apart in text:
                words = self._breaker(text.replace(apart, whole), _LOCALE)
                return [word.replace(whole, apart) for word in words]
        return list(self._breaker(text, _LOCALE))

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same words, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]
