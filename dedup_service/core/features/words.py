"""The words of one page, counted, with what the weighting schemes need to know of each.

The words are the distinct words of body and title, without stop words, modal particles and punctuation.
Counts are occurrences in the body; a word of the title alone has a count of 1. A word is marked if a
sentence of the body contains both the word and a marker. Markers are found before stop words are removed,
since several words are both.
"""

from collections.abc import Callable, Iterator, Sequence
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

PART_CHARS = 1 << 18
"""Characters of text that are segmented at once. Segments take some 80 bytes each; the equal ones of several parts
share one string."""

MODAL_PARTICLE = "y"
"""The part of speech of modal particles, such as 吗 and 呢."""


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
    """What a scheme needs in the word table; nothing else is computed.

    tags: parts of speech. title: words of the title. marker_by: "sentence", "word" or "" (no markers).
    min_chars: words with fewer characters are left out.
    """

    tags: bool = False
    title: bool = True
    marker_by: str = ""
    min_chars: int = 1


@dataclass(frozen=True, slots=True)
class WordTable:
    """The n distinct words of a page, in order of first occurrence, those of the title alone last.

    segments: all segments of the page, also those that are not features.
    first int64[n]: the segment where each word first occurs. low, high uint64[n]: the two halves of its
    hash. counts int64[n], idf float64[n], in_title and marked bool[n].
    tags: the part of speech of each segment; empty if the scheme does not need it.
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
        """The n words."""
        return [self.segments[i] for i in self.first.tolist()]

    @property
    def parts_of_speech(self) -> list[str]:
        """The part of speech of each of the n words where it first occurs; "" if it is not needed."""
        return [self.tags[i] for i in self.first.tolist()] if self.tags else [""] * len(self)


class WordCounter:
    """Counts the words of folded titles and bodies, as one scheme needs them.

    hash_word: returns the unsigned hash of a word, of 64 or 128 bits.
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
        """Segment a folded title and body, and return their words.

        language: the page's BCP 47 tag, if any.
        """
        segments, tags = self._segments(body, language)
        size = len(segments)
        if self._needs.title and title:
            more, more_tags = self._segments(title, language)
            segments, tags = segments + more, tags + more_tags
        vocabulary = self._vocabulary
        slots = vocabulary.slots(segments)
        phrases = [i for i in vocabulary.phrases(slots[:size]) if self._markers.phrase_at(segments, i)]
        table = WordTable(segments, *vocabulary.distinct(slots, size, phrases), tags)
        return _without_particles(table) if tags else table

    def _segments(self, text: str, language: str | None) -> tuple[list[str], list[str]]:
        segmenter = self._segmenter.for_text(text, language)
        if len(text) <= PART_CHARS:
            return self._cut(segmenter, text)
        known: dict[str, str] = {}
        segments: list[str] = []
        tags: list[str] = []
        for part in _parts(text):
            words, their_tags = self._cut(segmenter, part)
            segments += [known.setdefault(word, word) for word in words]
            tags += [known.setdefault(tag, tag) for tag in their_tags]
        return segments, tags

    def _cut(self, segmenter: Segmenter, text: str) -> tuple[list[str], list[str]]:
        if not self._needs.tags:
            return segmenter.cut(text), []
        pairs = segmenter.tag(text)
        return [word for word, _ in pairs], [tag for _, tag in pairs]

    def _look_up(self, words: Sequence[str]) -> Facts:
        kinds = [self._kind(word) for word in words]
        hashes = [self._hash_word(word) if kind & FEATURE else 0 for word, kind in zip(words, kinds, strict=True)]
        return Facts(hashes, self._idf.idfs_of(words), kinds)

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


def _parts(text: str) -> Iterator[str]:
    """Yield a long text in parts: cut after a line, or after a word if the line is longer than a part."""
    start = 0
    while start < len(text):
        end = start + PART_CHARS
        if end < len(text):
            ends = (text.rfind(space, start + 1, end) + 1 for space in "\n ")
            end = next(filter(None, ends), end)
        yield text[start:end]
        start = end


def _without_particles(table: WordTable) -> WordTable:
    """Return the table without modal particles."""
    kept = np.array([tag != MODAL_PARTICLE for tag in table.parts_of_speech], dtype=np.bool_)
    return replace(
        table,
        first=table.first[kept],
        low=table.low[kept],
        high=table.high[kept],
        counts=table.counts[kept],
        idf=table.idf[kept],
        in_title=table.in_title[kept],
        marked=table.marked[kept],
    )
