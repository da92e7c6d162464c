"""Choose the segmenter for a text by its script: one for Chinese text, another for all other text.

One pass counts letters in four classes: Han, kana, Latin, and all other scripts. Digits, punctuation and
marks are not counted. A text is Chinese if at least a twentieth of its letters are Han, and if no other
script than Latin has more letters or the page states that it is Chinese: an English page that names a person
in Chinese is not Chinese, a Chinese page full of product names is. A text is Japanese if it has at least one
kana for five Han, or if the page states that it is: a Japanese headline may have no kana.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.text.normalise import code_points
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.segmentation.segmenter import Segmenter
from dedup_service.core.text.segmentation.segments import Segments

__all__ = ["ScriptSegmenter", "Scripts", "scripts_of"]

NONE, LATIN, HAN, KANA, OTHER = range(5)
_PLANE = 0x10000
_LATIN_END = 0x0250
# Of the kana blocks only the letters: their middle dot is written in Chinese names of foreigners.
_RANGES = ((0x3041, 0x3097, KANA), (0x30A1, 0x30FB, KANA), (0x3400, 0x4DC0, HAN), (0x4E00, 0xA000, HAN))


class Scripts(NamedTuple):
    """The number of letters of a text in each class."""

    latin: int
    han: int
    kana: int
    other: int


def scripts_of(points: npt.NDArray[np.uint32]) -> Scripts:
    """Return the number of letters of a folded text, uint32[n], in each class; planes 2 and 3 are Han."""
    (counts,) = class_counts(points, np.array([0, len(points)]), _classes()).tolist()
    return Scripts(*counts)


@kernel
def class_counts(
    points: npt.NDArray[np.uint32], bounds: npt.NDArray[np.int64], classes: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """Return the number of letters of n texts in each class, in the order of `Scripts`: int64[n, 4].

    points: uint32[k], of all texts. bounds: int64[n + 1], where they begin, and the end of the last one. classes:
    uint8[65536], of the first plane.
    """
    counts = np.empty((len(bounds) - 1, 4), np.int64)
    for text in range(len(counts)):
        latin = han = kana = other = 0
        for code in points[bounds[text] : bounds[text + 1]]:
            if code < np.uint32(_PLANE):
                kind = classes[code]
                latin += kind == LATIN
                han += kind == HAN
                kana += kind == KANA
                other += kind == OTHER
            else:
                han += np.uint32(2 * _PLANE) <= code < np.uint32(4 * _PLANE)
        counts[text, 0], counts[text, 1], counts[text, 2], counts[text, 3] = latin, han, kana, other
    return counts


@cache
def _classes() -> npt.NDArray[np.uint8]:
    classes = np.zeros(_PLANE, dtype=np.uint8)
    for first, end, kind in _RANGES:
        classes[first:end] = kind
    for code in range(_LATIN_END):
        classes[code] = LATIN if chr(code).isalpha() else NONE
    for code in range(_LATIN_END, _PLANE):
        if not classes[code] and unicodedata.category(chr(code))[0] == "L":
            classes[code] = OTHER
    return classes


HAN_FOR_A_KANA = 5
"""Japanese text has at least one kana for five Han; Chinese text with a Japanese brand name has fewer."""

LETTERS_FOR_A_HAN = 20
"""Two of 16,719 crawled pages with any Han have more letters for each: Russian, with a Chinese name."""


class ScriptSegmenter(Segmenter):
    """Gives each text to the segmenter of its script."""

    def __init__(self, chinese: Segmenter, other: Segmenter) -> None:
        self._chinese = chinese
        self._other = other

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        return self.for_text(code_points(text)).cut(text)

    def segments(self, text: str) -> Segments:
        """Return the same pieces as places."""
        return self.for_text(code_points(text)).segments(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, each with its part of speech."""
        return self.for_text(code_points(text)).tag(text)

    def for_text(self, points: npt.NDArray[np.uint32], language: str | None = None) -> Segmenter:
        """Return the segmenter for the code points uint32[n] of a folded text.

        language: the BCP 47 tag that the page states, if any.
        """
        return self._for(scripts_of(points), language)

    def for_pages(self, pages: PageTexts, languages: Sequence[str | None]) -> list[tuple[Segmenter, Segmenter]]:
        """Return the segmenters for the body and for the title of each page."""
        bounds = np.empty(2 * len(pages) + 1, np.int64)
        bounds[::2], bounds[1::2] = pages.starts, pages.bodies
        stated = [language[:2].lower() if language else "" for language in languages]
        of_pages = np.empty((len(bounds) - 1, 2), np.bool_)
        for column, name in enumerate(("ja", "zh")):
            of_pages[::2, column] = of_pages[1::2, column] = [language == name for language in stated]
        chinese = are_chinese(class_counts(pages.points, bounds, _classes()), of_pages)
        kinds = (self._other, self._chinese)
        choices = [(of_body, of_title) for of_body in kinds for of_title in kinds]
        return [choices[choice] for choice in (2 * chinese[::2] + chinese[1::2]).tolist()]

    def _for(self, scripts: Scripts, language: str | None) -> Segmenter:
        stated = language[:2].lower() if language else ""
        (chinese,) = are_chinese(np.array([scripts]), np.array([[stated == "ja", stated == "zh"]])).tolist()
        return self._chinese if chinese else self._other


@kernel
def are_chinese(counts: npt.NDArray[np.int64], stated: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return 1 for each of n texts that the Chinese segmenter cuts, else 0: int64[n].

    counts: letters of each class, int64[n, 4]. stated: whether the page states Japanese, and Chinese: bool[n, 2].
    """
    chinese = np.zeros(len(counts), np.int64)
    for text in range(len(counts)):
        latin, han, kana, other = counts[text]
        if han == 0 or stated[text, 0] or (kana > 0 and HAN_FOR_A_KANA * kana >= han):
            continue
        may_be_chinese = han >= other or stated[text, 1]
        chinese[text] = may_be_chinese and LETTERS_FOR_A_HAN * han >= latin + han + kana + other
    return chinese
