"""The word lists of a space: stop words and marker words.

They are given as values; `runtime.resources` reads the files. A marker word announces a sentence that
carries the point (总之, 综上所述, 但是, in conclusion, however). Source: Zhang & He 2020, marker words.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from dedup_service.core.text.normalise import fold

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
    """Marker words and phrases as the segmenter cuts them. cut: the segmenter."""

    def __init__(self, markers: Sequence[str], cut: Callable[[str], list[str]]) -> None:
        self._words = tuple(markers)
        self._whole: set[str] = set()
        self._phrases: list[list[str]] = []
        for marker in markers:
            segments = cut(marker)
            if len(segments) == 1:
                self._whole.add(segments[0])
            else:
                self._phrases.append(segments)

    @property
    def whole(self) -> AbstractSet[str]:
        """The segments that are marker words."""
        return self._whole

    @property
    def phrases(self) -> Sequence[Sequence[str]]:
        """The marker phrases, of several segments each."""
        return self._phrases

    def inside(self, word: str) -> bool:
        """Whether the word itself contains a marker, which is what the paper literally says."""
        return any(marker in word for marker in self._words)
