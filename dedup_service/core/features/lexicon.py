"""The word lists of a space: stop words and marker words.

They are given as values; `runtime.resources` reads the files. A marker word announces a sentence that
carries the point (总之, 综上所述, 但是, in conclusion, however). Source: Zhang & He 2020, marker words.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from dedup_service.core.text.normalise import fold

__all__ = ["SENTENCE_ENDS", "Lexicon", "Markers"]

SENTENCE_ENDS = frozenset("。.!?;…\n")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Folded stop words and markers, sorted; markers may be phrases."""

    stop_words: frozenset[str] = frozenset()
    markers: tuple[str, ...] = ()

    @classmethod
    def from_lists(cls, stop_words: Iterable[str], markers: Iterable[str]) -> Self:
        """Fold, sort and deduplicate both lists; empty lines are dropped."""
        folded = {fold(word) for word in stop_words} - {""}
        return cls(frozenset(folded), tuple(sorted({fold(marker) for marker in markers} - {""})))


class Markers:
    """Finds marker words and phrases among segments, as the segmenter cuts them. cut: the segmenter."""

    def __init__(self, markers: Sequence[str], cut: Callable[[str], list[str]]) -> None:
        self._words = tuple(markers)
        self._whole: set[str] = set()
        self._phrases: dict[str, list[list[str]]] = {}
        for marker in markers:
            segments = cut(marker)
            if len(segments) == 1:
                self._whole.add(segments[0])
            else:
                self._phrases.setdefault(segments[0], []).append(segments)

    def has(self, word: str) -> bool:
        """Whether this segment is a marker word."""
        return word in self._whole

    def begins(self, word: str) -> bool:
        """Whether a marker phrase, of several segments, begins with this one."""
        return word in self._phrases

    def phrase_at(self, segments: Sequence[str], index: int) -> bool:
        """Whether a marker phrase begins at segments[index], for which `begins` is true."""
        return any(segments[index : index + len(phrase)] == phrase for phrase in self._phrases[segments[index]])

    def inside(self, word: str) -> bool:
        """Whether the word itself contains a marker, which is what the paper literally says."""
        return any(marker in word for marker in self._words)
