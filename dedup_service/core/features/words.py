"""The words of one page, counted, with what the weighting schemes need to know of each.

The words are the distinct words of body and title, without stop words, modal particles and punctuation.
Counts are occurrences in the body; a word of the title alone has a count of 1. A word is marked if a
sentence of the body contains both the word and a marker. Markers are found before stop words are removed,
since several words are both.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from sys import intern

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
from dedup_service.core.text.page_text import PageText, PageTexts
from dedup_service.core.text.segmentation.segmenter import Segmenter
from dedup_service.core.text.segmentation.segments import NO_SEGMENTS, PageSegments, Segments

PART_CHARS = 1 << 18
"""Characters of text that are segmented at once: segments that are strings take some 80 bytes each."""

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
    rows: what is known of each word, WORD[n].
    tags: the part of speech of each segment; empty if the scheme does not need it.
    """

    segments: Segments
    rows: npt.NDArray[np.void]
    tags: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def words(self) -> list[str]:
        """The n words."""
        return [self.segments[i] for i in self.rows["first"].tolist()]

    @property
    def parts_of_speech(self) -> list[str]:
        """The part of speech of each of the n words where it first occurs; "" if it is not needed."""
        return [self.tags[i] for i in self.rows["first"].tolist()] if self.tags else [""] * len(self)

    @property
    def lanes(self) -> list[npt.NDArray[np.uint64]]:
        """The two halves of the hash of each word, the low one first: uint64[n] each."""
        return [np.ascontiguousarray(self.rows[half]) for half in ("low", "high")]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each word is in the body, 1 for a word of the title alone: int64[n]."""
        return np.asarray(self.rows["counts"])

    @property
    def idf(self) -> npt.NDArray[np.float64]:
        """The IDF of each word: float64[n]."""
        return np.asarray(self.rows["idf"])

    @property
    def in_title(self) -> npt.NDArray[np.bool_]:
        """Which words are in the title: bool[n]."""
        return np.asarray(self.rows["in_title"])

    @property
    def marked(self) -> npt.NDArray[np.bool_]:
        """Which words are marked: bool[n]."""
        return np.asarray(self.rows["marked"])


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of pages, counted when they are asked for. languages: the BCP 47 tag of each page, if any."""

    counter: "WordCounter"
    pages: PageTexts
    languages: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.pages)

    def tables(self) -> Iterator[WordTable]:
        """Yield the words of each page."""
        for number, language in enumerate(self.languages):
            yield self.counter.table(self.pages.page(number), language)

    def segmented(self) -> Iterator[tuple[list[int], PageSegments]]:
        """Yield the segments of pages, of many in one call; see `WordCounter.segmented`."""
        return self.counter.segmented(self.pages, self.languages)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that has the words of the pages, or looks them up."""
        return self.counter.vocabulary


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
        self._fixed_kinds = self._kinds_of_lists()
        self.vocabulary = Vocabulary(self._look_up, self._markers.phrases)

    def table(self, text: PageText, language: str | None = None) -> WordTable:
        """Segment a page, and return its words. language: the page's BCP 47 tag, if any."""
        body, title, tags = self._of_page(text, language)
        pages = PageSegments.joined([body, title])
        table = WordTable(pages.segments, self.vocabulary.find(pages).distinct(), tags)
        return _without_particles(table) if tags else table

    def segmented(self, pages: PageTexts, languages: Sequence[str | None]) -> Iterator[tuple[list[int], PageSegments]]:
        """Yield the segments of pages, of many in one call: the numbers of the pages, and their segments.

        languages: the BCP 47 tag of each page, if any. Not for a scheme that needs tags.
        """
        together: dict[Segmenter, list[int]] = {}
        alone: list[int] = []
        starts, bodies = pages.starts.tolist(), pages.bodies.tolist()
        for number, (of_body, of_title) in enumerate(self._segmenter.for_pages(pages, languages)):
            is_alike = bodies[number] == starts[number + 1] or (self._needs.title and of_body is of_title)
            if is_alike and starts[number + 1] - starts[number] <= PART_CHARS:
                together.setdefault(of_body, []).append(number)
            else:
                alone.append(number)
        for segmenter, numbers in together.items():
            yield numbers, segmenter.segments_of_pages(pages.chosen(numbers))
        if alone:
            parts = [self._of_page(pages.page(number), languages[number])[:2] for number in alone]
            yield alone, PageSegments.joined([part for page in parts for part in page])

    def _of_page(self, text: PageText, language: str | None) -> tuple[Segments, Segments, list[str]]:
        """Return the segments of body and title, and the parts of speech of both if needed."""
        segments, tags = self._segments(text.body, self._segmenter.for_text(text.body_points, language))
        if not (text.title and self._needs.title):
            return segments, NO_SEGMENTS, tags
        more, more_tags = self._segments(text.title, self._segmenter.for_text(text.title_points, language))
        return segments, more, tags + more_tags

    def _segments(self, text: str, segmenter: Segmenter) -> tuple[Segments, list[str]]:
        parts = [text] if len(text) <= PART_CHARS else _parts(text)
        if not self._needs.tags:
            return Segments.joined(map(segmenter.segments, parts)), []
        tagged = [segmenter.tag(part) for part in parts]
        segments = Segments.joined(Segments.of([word for word, _ in pairs]) for pairs in tagged)
        return segments, [intern(tag) for pairs in tagged for _, tag in pairs]

    def _look_up(self, words: Sequence[str]) -> Facts:
        kinds = [self._kind(word) for word in words]
        hashes = [self._hash_word(word) if kind & FEATURE else 0 for word, kind in zip(words, kinds, strict=True)]
        return Facts(hashes, self._idf.idfs_of(words), kinds)

    def _kinds_of_lists(self) -> dict[str, int]:
        """Return the kinds of the ends of sentences and of markers, without what is known of any word."""
        kinds = dict.fromkeys(SENTENCE_ENDS, SENTENCE_END)
        if self._needs.marker_by == "sentence":
            beginnings = {phrase[0] for phrase in self._markers.phrases}
            for kind, words in ((MARKER, self._markers.whole), (PHRASE, beginnings)):
                kinds |= {word: kinds.get(word, 0) | kind for word in words}
        return kinds

    def _kind(self, word: str) -> int:
        kind = self._fixed_kinds.get(word, 0)
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
    return WordTable(table.segments, table.rows[kept], table.tags)
