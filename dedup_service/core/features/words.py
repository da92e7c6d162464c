"""The words of one page, counted, with what the weighting schemes need to know of each.

Words are the distinct words of body and title, without stop words, modal particles and punctuation. A
count is of the body; a word of the title alone counts once. A word is marked where a sentence of the
body holds both it and a marker word; markers are looked for before stop words leave, as several are both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.lexicon import SENTENCE_ENDS, Lexicon, Markers
from dedup_service.core.features.vocabulary import (
    FEATURE,
    MARKED,
    MARKER,
    PHRASE,
    SENTENCE_END,
    Facts,
    Vocabulary,
)
from dedup_service.core.text.segmentation import Segmenter

__all__ = ["Feature", "WordCounter", "WordNeeds", "WordTable"]

MODAL_PARTICLE = "y"


@dataclass(frozen=True, slots=True)
class Feature:
    """A weighted word with the factors that made its weight."""

    word: str
    weight: float
    count: int
    idf: float
    factors: dict[str, float]


@dataclass(frozen=True, slots=True)
class WordNeeds:
    """What a scheme asks of the word table: the rest is not computed.

    marker_by: "sentence", "word" or "" (no markers). min_chars: words with fewer characters are left out.
    """

    tags: bool = False
    title: bool = True
    marker_by: str = ""
    min_chars: int = 1


@dataclass(frozen=True, slots=True)
class WordTable:
    """n distinct words, in order of first occurrence, those of the title alone last.

    segments: the page's; first int64[n]: the segment where each word first stands. low, high uint64[n]: the two
    halves of its hash. counts int64[n], idf float64[n], in_title and marked bool[n]; tags: part of speech of each
    segment, empty where not asked for.
    """

    segments: Sequence[str]
    first: npt.NDArray[np.int64]
    low: npt.NDArray[np.uint64]
    high: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    idf: npt.NDArray[np.float64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]
    tags: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.first)

    @property
    def words(self) -> list[str]:
        """The words themselves."""
        return [self.segments[at] for at in self.first.tolist()]

    @property
    def parts_of_speech(self) -> list[str]:
        """The tag of each word where it first stands."""
        return [self.tags[at] for at in self.first.tolist()] if self.tags else [""] * len(self)


class WordCounter:
    """Turns folded titles and bodies into word tables, for one scheme's needs.

    hash_word: unsigned hash of a word.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        lexicon: Lexicon,
        idf: IdfTable,
        needs: WordNeeds,
        hash_word: Callable[[str], int],
    ) -> None:
        self._segmenter = segmenter
        self._stop_words = lexicon.stop_words
        self._idf = idf
        self._needs = needs
        self._hash_word = hash_word
        self._markers = Markers(lexicon.markers, segmenter.cut)
        self._vocabulary = Vocabulary(self._look_up)

    def table(self, title: str, body: str, language: str | None = None) -> WordTable:
        """Segment a folded title and body and return their words; language: the page's BCP 47 tag, if it has one."""
        segments, tags = self._segments(body, language)
        size = len(segments)
        if self._needs.title and title:
            more, more_tags = self._segments(title, language)
            segments, tags = segments + more, tags + more_tags
        vocabulary = self._vocabulary
        slots = vocabulary.slots(segments)
        phrases = [at for at in vocabulary.phrases(slots[:size]) if self._markers.stands_at(segments, at)]
        table = WordTable(segments, *vocabulary.distinct(slots, size, phrases), tags)
        return _without_particles(table) if tags else table

    def _segments(self, text: str, language: str | None) -> tuple[list[str], list[str]]:
        segmenter = self._segmenter.for_text(text, language)
        if not self._needs.tags:
            return segmenter.cut(text), []
        pairs = segmenter.tag(text)
        return [word for word, _ in pairs], [tag for _, tag in pairs]

    def _look_up(self, words: Sequence[str]) -> Facts:
        kinds = [self._kind(word) for word in words]
        hashes = [self._hash_word(word) if kind & FEATURE else 0 for word, kind in zip(words, kinds, strict=True)]
        return Facts(hashes, self._idf.of_all(words), kinds)

    def _kind(self, word: str) -> int:
        kind = SENTENCE_END if word in SENTENCE_ENDS else 0
        if self._needs.marker_by == "sentence":
            kind |= MARKER * self._markers.has(word) | PHRASE * self._markers.begins(word)
        if len(word) < self._needs.min_chars or word in self._stop_words:
            return kind
        if not (word.isalnum() or any(map(str.isalnum, word))):
            return kind
        if self._needs.marker_by == "word" and self._markers.inside(word):
            kind |= MARKED
        return kind | FEATURE


def _without_particles(table: WordTable) -> WordTable:
    stays = np.array([tag != MODAL_PARTICLE for tag in table.parts_of_speech], dtype=np.bool_)
    return replace(
        table,
        first=table.first[stays],
        low=table.low[stays],
        high=table.high[stays],
        counts=table.counts[stays],
        idf=table.idf[stays],
        in_title=table.in_title[stays],
        marked=table.marked[stays],
    )
