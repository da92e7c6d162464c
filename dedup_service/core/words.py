"""The words of one page, counted, with what the weighting schemes need to know of each.

Words are the distinct words of body and title, without stop words, modal particles and punctuation. A
count is of the body; a word of the title alone counts once. A word is marked where a sentence of the
body holds both it and a marker word; markers are looked for before stop words leave, as several are both.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dedup_service.core.idf import IdfTable
from dedup_service.core.lexicon import Lexicon, Markers
from dedup_service.core.segmentation import Segmenter

__all__ = ["WordCounter", "WordNeeds", "WordTable"]

MODAL_PARTICLE = "y"
MOST_KNOWN = 300_000  # words remembered before all are forgotten: some 60 MB

Facts: TypeAlias = tuple[int, float] | tuple[()]


@dataclass(frozen=True, slots=True)
class WordNeeds:
    """What a scheme asks of the word table: the rest is not computed.

    marker_by: "sentence", "word" or "" (no markers). least_chars: words with fewer characters are left out.
    """

    tags: bool = False
    title: bool = True
    marker_by: str = ""
    least_chars: int = 1


@dataclass(frozen=True, slots=True)
class WordTable:
    """n distinct words with their unsigned hashes.

    counts int64[n], idf float64[n], in_title and marked bool[n]; tags str[n], "" where not asked for.
    """

    words: list[str]
    hashes: Sequence[int]
    counts: npt.NDArray[np.int64]
    idf: npt.NDArray[np.float64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.words)


class WordCounter:
    """Turns folded titles and bodies into word tables, for one scheme's needs.

    hash_word: unsigned hash of a word. What is known of a word is worked out once and remembered.
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
        self._known: dict[str, Facts] = {}

    def table(self, title: str, body: str) -> WordTable:
        """Segment a folded title and body and return their words."""
        segments, tags = self._segments(body)
        counts = Counter(segments)
        marked = self._marked(segments)
        title_words: set[str] = set()
        if self._needs.title and title:
            title_segments, title_tags = self._segments(title)
            tags = title_tags | tags
            title_words.update(title_segments)
            counts.update(sorted(word for word in title_words if word not in counts))
        facts = self._facts(counts)
        words = [word for word in compress(counts, facts) if tags.get(word) != MODAL_PARTICLE]
        hashes, idf = zip(*map(self._known.__getitem__, words), strict=True) if words else ((), ())
        size = len(words)
        return WordTable(
            words=words,
            hashes=hashes,
            counts=np.fromiter(map(counts.__getitem__, words), dtype=np.int64, count=size),
            idf=np.array(idf, dtype=np.float64),
            in_title=np.fromiter(map(title_words.__contains__, words), dtype=np.bool_, count=size),
            marked=np.fromiter(map(marked.__contains__, words), dtype=np.bool_, count=size),
            tags=[tags.get(word, "") for word in words] if tags else [""] * size,
        )

    def _segments(self, text: str) -> tuple[list[str], dict[str, str]]:
        if not self._needs.tags:
            return self._segmenter.cut(text), {}
        pairs = self._segmenter.tag(text)
        return [word for word, _ in pairs], dict(reversed(pairs))

    def _marked(self, segments: list[str]) -> set[str]:
        if self._needs.marker_by == "word":
            return {word for word in segments if self._markers.inside(word)}
        return self._markers.marked(segments) if self._needs.marker_by == "sentence" else set()

    def _facts(self, words: Mapping[str, int]) -> list[Facts]:
        """Hash and idf of each of `words`, () where it is no feature; looked up without a Python loop."""
        facts = list(map(self._known.get, words))
        if None in facts:
            facts = [self._look_up(word) if fact is None else fact for word, fact in zip(words, facts, strict=True)]
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known.update(zip(words, cast("list[Facts]", facts), strict=True))
        return cast("list[Facts]", facts)

    def _look_up(self, word: str) -> Facts:
        """The hash and idf of a word that is a feature, else nothing."""
        feature = len(word) >= self._needs.least_chars and word not in self._stop_words
        return (self._hash_word(word), self._idf.of(word)) if feature and any(map(str.isalnum, word)) else ()
