"""Words between Unicode word boundaries: right for scripts that write spaces, and the fallback for those that do not.

English, German, Korean, Arabic and every other spaced script: a word is what stands between two boundaries, inflected
and compound as it is written. Scripts that write no spaces (Thai, Lao, Khmer, Burmese, kana) come out of that as
single characters, which are joined to overlapping pairs, since one character says too little; `icu_words` has words
for them.

All segments together give the text back; the pairs overlap and are the one exception.
Source: Unicode Standard Annex 29 (word boundaries), by the `regex` library.
"""

from itertools import pairwise

import regex

from dedup_service.core.segmentation.segmenter import UNKNOWN, Segmenter

__all__ = ["UnicodeSegmenter"]

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
