"""The word lists that a space is made with: stop words and marker words.

They come in as values; `runtime.resources` reads the files. Marker words announce a sentence that
carries the point (总之, 综上所述, 但是, in conclusion, however). Source: Zhang & He 2020, marker words.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import Self

from dedup_service.core.normalise import fold

__all__ = ["Lexicon", "Markers"]

SENTENCE_ENDS = frozenset("。.!?;…\n")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Folded stop words and markers, sorted; markers may be phrases."""

    stop_words: frozenset[str] = frozenset()
    markers: tuple[str, ...] = ()

    @classmethod
    def of(cls, stop_words: Iterable[str], markers: Iterable[str]) -> Self:
        """Fold, sort and deduplicate both lists; empty lines are dropped."""
        folded = {fold(word) for word in stop_words} - {""}
        return cls(frozenset(folded), tuple(sorted({fold(marker) for marker in markers} - {""})))


class Markers:
    """Finds marker words and phrases among the segments of a text, as the segmenter cuts them."""

    def __init__(self, markers: Sequence[str], cut: Callable[[str], list[str]]) -> None:
        self._words = tuple(markers)
        self._phrases: dict[str, list[list[str]]] = {}
        for marker in markers:
            segments = cut(marker)
            self._phrases.setdefault(segments[0], []).append(segments)

    def marked(self, segments: list[str]) -> set[str]:
        """Return the segments of all sentences that hold a marker."""
        phrases = self._phrases
        found: set[str] = set()
        hits = [at for at in _places(segments, phrases) if self._starts(segments, at)]
        if hits:
            ends = [-1, *_places(segments, SENTENCE_ENDS), len(segments)]
            for at in hits:
                after = bisect_right(ends, at)
                found.update(segments[ends[after - 1] + 1 : ends[after]])
        return found

    def _starts(self, segments: list[str], at: int) -> bool:
        return any(segments[at : at + len(phrase)] == phrase for phrase in self._phrases[segments[at]])

    def inside(self, word: str) -> bool:
        """Whether the word itself contains a marker: the letter of the paper's text."""
        return any(marker in word for marker in self._words)


def _places(segments: list[str], wanted: Container[str]) -> Iterator[int]:
    """The positions of the wanted segments, found without a Python loop: most texts have few."""
    return compress(count(), map(wanted.__contains__, segments))
