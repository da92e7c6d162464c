"""The words of one page, counted, with what the weighting schemes need to know of each.

Words are the distinct words of body and title, without stop words, modal particles and punctuation. A
count is of the body; a word of the title alone counts once. A word is marked where a sentence of the
body holds both it and a marker word; markers are looked for before stop words leave, as several are both.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.idf import IdfTable
from dedup_service.core.lexicon import Lexicon, Markers
from dedup_service.core.segmentation import Segmenter

__all__ = ["WordCounter", "WordNeeds", "WordTable"]

MODAL_PARTICLE = "y"
MOST_KNOWN = 300_000  # words remembered before all are forgotten: some 60 MB


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
    hashes: list[int]
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
        self._known: dict[str, tuple[int, float] | None] = {}

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
            counts.update(sorted(title_words - counts.keys()))
        known = self._facts(counts)
        rows = [(word, count, facts) for word, count in counts.items() if (facts := known[word]) is not None]
        if tags:
            rows = [row for row in rows if tags[row[0]] != MODAL_PARTICLE]
        words = [word for word, _, _ in rows]
        return WordTable(
            words=words,
            hashes=[facts[0] for _, _, facts in rows],
            counts=np.array([count for _, count, _ in rows], dtype=np.int64),
            idf=np.array([facts[1] for _, _, facts in rows], dtype=np.float64),
            in_title=np.array([word in title_words for word in words], dtype=np.bool_),
            marked=np.array([word in marked for word in words], dtype=np.bool_),
            tags=[tags.get(word, "") for word in words],
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

    def _facts(self, words: Mapping[str, int]) -> dict[str, tuple[int, float] | None]:
        """What is known of every word there is, `words` among them."""
        known = self._known
        if len(known) > MOST_KNOWN:
            known.clear()
        for word in [word for word in words if word not in known]:
            known[word] = self._look_up(word)
        return known

    def _look_up(self, word: str) -> tuple[int, float] | None:
        """The hash and idf of a word that is a feature, else None."""
        feature = len(word) >= self._needs.least_chars and word not in self._stop_words
        return (self._hash_word(word), self._idf.of(word)) if feature and any(map(str.isalnum, word)) else None
