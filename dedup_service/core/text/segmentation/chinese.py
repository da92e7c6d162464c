"""Chinese words with their part of speech, as jieba cuts them, in compiled loops (`jieba_cut`).

The part of speech of a word is the one that jieba's dictionary gives it (ICTCLAS style), `m` for an unknown number and
`eng` for other unknown words of ASCII letters and digits.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from dedup_service.core.text.normalise import code_points, fold
from dedup_service.core.text.page_text import NOTHING, PageTexts
from dedup_service.core.text.segmentation.jieba_cut import word_ends
from dedup_service.core.text.segmentation.jieba_model import JiebaModel
from dedup_service.core.text.segmentation.segmenter import UNKNOWN, Segmenter
from dedup_service.core.text.segmentation.segments import PageSegments, Segments

USER_FREQUENCY = 100_000
"""The frequency that every word of a user's dictionary gets, whatever the line says."""

_NUMBER, _LATIN = "m", "eng"


class ChineseSegmenter(Segmenter):
    """Cuts as jieba does with the dictionary of `model`. tags: returns word → part of speech, if it is needed."""

    def __init__(self, model: JiebaModel, tags: Callable[[], Mapping[str, str]]) -> None:
        self._model = model
        self._read_tags = tags

    @cached_property
    def _tags(self) -> Mapping[str, str]:
        return self._read_tags()

    def segments(self, text: str) -> Segments:
        """Return the words and the pieces between them, as places."""
        return self.segments_of_pages(PageTexts.joined([code_points(text), NOTHING])).segments

    def segments_of_pages(self, pages: PageTexts) -> PageSegments:
        """Return the segments of pages."""
        ends, starts, bodies = word_ends(pages.points, pages.starts, pages.bodies, *self._model.arrays)
        return PageSegments(Segments(pages.points, ends), starts, bodies)

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        return self.segments(text).strings()

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, each with its part of speech."""
        tags = self._tags
        return [(word, tags.get(word) or _tag_of_unknown(word)) for word in self.cut(text)]


def parse_user_words(lines: Iterable[str]) -> dict[str, str]:
    """Return word → tag from lines in the format of jieba's user dictionaries: `word [frequency] [tag]`.

    Words are folded, as the texts are in which they are searched: `GPT模型`, `雲計算`, or one behind a byte order mark.
    """
    words: dict[str, str] = {}
    for line in lines:
        written, *rest = line.split()[:3] or [""]
        word = fold(written)
        if word:
            words[word] = next((field for field in rest if not field.isdigit()), UNKNOWN)
    return words


def _tag_of_unknown(word: str) -> str:
    """Return the part of speech of a word that the dictionary lacks."""
    known = [letter for letter in word if letter.isascii() and letter.isalnum()]
    if not known:
        return UNKNOWN
    return _NUMBER if all(letter.isdigit() for letter in known) else _LATIN
