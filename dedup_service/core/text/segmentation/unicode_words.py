"""Words by Unicode word boundaries, and by ICU's dictionaries for scripts without spaces.

`UnicodeSegmenter` serves English, German, Korean, Arabic and every other script with spaces: a word is the
text between two boundaries, inflected and compound as written. Text in scripts without spaces (Thai, Lao,
Khmer, Burmese, kana) would come out as single characters, which say too little, so they are joined to
overlapping pairs. All segments together give the text back, except where pairs overlap.

`IcuSegmenter` has words for Japanese, Thai, Lao, Khmer and Burmese, by ICU's dictionaries. It needs the
optional library `icu4py` (15 MB with ICU and its dictionaries). Text without such a script goes to the
segmenter for spaced scripts, so its words are the same with and without the library.

Source: Unicode Standard Annex 29 (word boundaries), by the `regex` library;
https://unicode-org.github.io/icu/userguide/boundaryanalysis/
"""

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise

import regex

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation.segmenter import UNKNOWN, Segmenter

__all__ = ["IcuSegmenter", "UnicodeSegmenter"]

_BOUNDARY = regex.compile(r"(?w)\b")
# Whether a boundary is between two letters of flags depends on how many are before it, and the library counts them
# for each. No letter of a flag is part of a word, so a longer run is one piece.
_MAX_FLAG_LETTERS = 64
_FLAGS = re.compile(f"([\U0001f1e6-\U0001f1ff]{{{_MAX_FLAG_LETTERS},}})")
_UNSPACED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hiragana}\p{Katakana}\p{Han}]+")


class UnicodeSegmenter(Segmenter):
    """Cuts at Unicode word boundaries, and text in scripts without spaces into pairs of characters."""

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        pieces = list(_pieces(text))
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
        """Return the same pieces, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]


def _pieces(text: str) -> Iterator[str]:
    """Yield the text between boundaries, and long runs of letters of flags."""
    for number, part in enumerate(_FLAGS.split(text)):
        if number % 2:
            yield part
        else:
            yield from filter(None, _BOUNDARY.split(part))


def _pairs(run: str) -> list[str]:
    return [run] if 0 < len(run) < 3 else [a + b for a, b in pairwise(run)]


_LOCALE = "root"  # dictionaries are chosen by script and are the same in every locale
# Thai, Lao, Burmese, Khmer, kana, Han. Plain ranges in `re` are ten times as fast as properties in `regex`.
_ICU_SCRIPTS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)
# Folding (NFKC) decomposes these vowels of Thai and Lao; the dictionaries have them composed.
_DECOMPOSED, _COMPOSED = ("\u0e4d\u0e32", "\u0ecd\u0eb2"), ("\u0e33", "\u0eb3")


class IcuSegmenter(Segmenter):
    """Cuts text with an unspaced script by ICU's dictionaries; `spaced` cuts all other text."""

    def __init__(self, spaced: Segmenter) -> None:
        try:
            self._breaker = import_module("icu4py.breakers").WordBreaker
        except ImportError as error:
            raise ConfigurationError(
                "words of Japanese and Thai need icu4py, which is not installed: pip install 'twinsieve[languages]'"
            ) from error
        self._spaced = spaced

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        if _ICU_SCRIPTS.search(text) is None:
            return self._spaced.cut(text)
        for decomposed, composed in zip(_DECOMPOSED, _COMPOSED, strict=True):
            if decomposed in text:
                words = self._breaker(text.replace(decomposed, composed), _LOCALE)
                return [word.replace(composed, decomposed) for word in words]
        return list(self._breaker(text, _LOCALE))

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]
