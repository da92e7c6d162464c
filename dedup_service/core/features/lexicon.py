"""The word lists of a space: stop words and marker words.

They are given as values; `runtime.resources` reads the files. A marker word announces a sentence that
carries the point (总之, 综上所述, 但是, in conclusion, however). Source: Zhang & He 2020, marker words.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from dedup_service._native import fold


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Folded stop words and markers, sorted; markers may be phrases."""

    stop_words: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()

    @classmethod
    def from_lists(cls, stop_words: Iterable[str], markers: Iterable[str]) -> Self:
        """Fold, sort and deduplicate both lists; empty lines are dropped."""
        return cls(*(tuple(sorted({fold(word) for word in words} - {""})) for words in (stop_words, markers)))
