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

from dedup_service.core.kernels import kernel, long_kernel
from dedup_service.core.text.normalise import code_points
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.segmentation.segmenter import Segmenter
from dedup_service.core.text.segmentation.segments import Segments

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
    return Scripts(*class_counts(points, _classes()))


@kernel
def class_counts(points: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Return the number of letters of a text uint32[k] in each class, in the order of `Scripts`.

    classes: uint8[65536], of the first plane.
    """
    latin = han = kana = other = 0
    for code in points:
        if code < np.uint32(_PLANE):
            kind = classes[code]
            latin += kind == LATIN
            han += kind == HAN
            kana += kind == KANA
            other += kind == OTHER
        else:
            han += np.uint32(2 * _PLANE) <= code < np.uint32(4 * _PLANE)
    return latin, han, kana, other


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


JAPANESE, CHINESE = 1, 2
STATED = {"ja": JAPANESE, "zh": CHINESE}
"""The languages that decide, if a page states one of them."""


class ScriptSegmenter(Segmenter):
    """Gives each text to the segmenter of its script."""

    def __init__(self, chinese: Segmenter, other: Segmenter) -> None:
        kinds = (other, chinese)
        self._choices = [(of_body, of_title) for of_body in kinds for of_title in kinds]

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
        chinese = is_chinese(*scripts_of(points), _stated(language))
        return self._choices[int(chinese)][1]

    def for_pages(self, pages: PageTexts, languages: Sequence[str | None]) -> list[tuple[Segmenter, Segmenter]]:
        """Return the segmenters for the body and for the title of each page."""
        stated = np.array([_stated(language) for language in languages], np.int64)
        choices = np.empty(len(pages), np.int64)
        choose(pages.points, pages.starts, pages.bodies, stated, _classes(), choices)
        return [self._choices[choice] for choice in choices.tolist()]


def _stated(language: str | None) -> int:
    return STATED.get(language[:2].lower(), 0) if language else 0


@long_kernel
def choose(
    points: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.int64],
    bodies: npt.NDArray[np.int64],
    stated: npt.NDArray[np.int64],
    classes: npt.NDArray[np.uint8],
    choices: npt.NDArray[np.int64],
) -> None:
    """Write to choices, int64[n], whether the Chinese segmenter cuts the body (2) and the title (1) of each of n pages.

    points, starts, bodies: of `PageTexts`. stated: int64[n], the language of each, as in `STATED`. classes: `_classes`.
    """
    for page in range(len(bodies)):
        choices[page] = 0
        for begin, end in ((starts[page], bodies[page]), (bodies[page], starts[page + 1])):
            latin, han, kana, other = class_counts(points[begin:end], classes)
            choices[page] = 2 * choices[page] + is_chinese(latin, han, kana, other, stated[page])


@kernel
def is_chinese(latin: int, han: int, kana: int, other: int, stated: int) -> bool:
    """Whether the Chinese segmenter cuts a text with so many letters of each class. stated: as in `STATED`."""
    if han == 0 or stated == JAPANESE or (kana > 0 and HAN_FOR_A_KANA * kana >= han):
        return False
    return (han >= other or stated == CHINESE) and LETTERS_FOR_A_HAN * han >= latin + han + kana + other
