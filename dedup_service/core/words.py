"""The words of one page, counted, with what the weighting schemes need to know of each.

Words are the distinct words of body and title, without stop words, modal particles and punctuation. A
count is of the body; a word of the title alone counts once. A word is marked where a sentence of the
body holds both it and a marker word; markers are looked for before stop words leave, as several are both.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.idf import IdfTable
from dedup_service.core.lexicon import Lexicon, Markers
from dedup_service.core.memory import Memory
from dedup_service.core.segmentation import Segmenter

__all__ = ["WordCounter", "WordNeeds", "WordTable"]

MODAL_PARTICLE = "y"


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
    """n distinct words: counts int64[n], idf float64[n], in_title and marked bool[n], tags str[n] ("" if not asked)."""

    words: list[str]
    counts: npt.NDArray[np.int64]
    idf: npt.NDArray[np.float64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.words)


class WordCounter:
    """Turns folded titles and bodies into word tables, for one scheme's needs."""

    def __init__(self, segmenter: Segmenter, lexicon: Lexicon, idf: IdfTable, needs: WordNeeds) -> None:
        self._segmenter = segmenter
        self._stop_words = lexicon.stop_words
        self._idf_table = idf
        self._needs = needs
        self._markers = Markers(lexicon.markers, segmenter.cut)
        self._idf: Memory[str, float | None] = Memory(self._idf_of)

    def table(self, title: str, body: str) -> WordTable:
        """Segment a folded title and body and return their words."""
        body_segments, tags = self._segments(body)
        title_segments, title_tags = self._segments(title) if self._needs.title else ([], {})
        tags = title_tags | tags
        idf = self._idf
        counts = {word: n for word, n in Counter(body_segments).items() if idf[word] is not None}
        title_words = {word for word in title_segments if idf[word] is not None}
        for word in sorted(title_words - counts.keys()):
            counts[word] = 1
        words = [word for word in counts if tags.get(word) != MODAL_PARTICLE] if tags else list(counts)
        marked = self._marked(words, body_segments)
        size = len(words)
        return WordTable(
            words=words,
            counts=np.array([counts[word] for word in words], dtype=np.int64),
            idf=np.array([idf[word] for word in words], dtype=np.float64),
            in_title=np.fromiter(map(title_words.__contains__, words), dtype=np.bool_, count=size),
            marked=np.fromiter(map(marked.__contains__, words), dtype=np.bool_, count=size),
            tags=[tags.get(word, "") for word in words] if tags else [""] * size,
        )

    def _segments(self, text: str) -> tuple[list[str], dict[str, str]]:
        if not self._needs.tags:
            return self._segmenter.cut(text), {}
        pairs = self._segmenter.tag(text)
        return [word for word, _ in pairs], dict(reversed(pairs))

    def _marked(self, words: list[str], segments: list[str]) -> set[str]:
        if self._needs.marker_by == "word":
            return {word for word in words if self._markers.inside(word)}
        return self._markers.marked(segments) if self._needs.marker_by == "sentence" else set()

    def _idf_of(self, word: str) -> float | None:
        """The idf of a word that is a feature, else None."""
        feature = len(word) >= self._needs.least_chars and word not in self._stop_words
        return self._idf_table.of(word) if feature and any(map(str.isalnum, word)) else None
