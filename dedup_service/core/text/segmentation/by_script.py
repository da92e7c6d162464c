"""Choose the segmenter for a text by its script: one for Chinese text, another for all other text.

One pass counts letters in four classes: Han, kana, Latin, and all other scripts. Digits, punctuation and
marks are not counted. A text is Chinese if at least a twentieth of its letters are Han, and if no other
script than Latin has more letters or the page states that it is Chinese: an English page that names a person
in Chinese is not Chinese, a Chinese page full of product names is. A text is Japanese if it has at least one
kana for five Han, or if the page states that it is: a Japanese headline may have no kana.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.text.segmentation.segmenter import Segmenter

__all__ = ["ScriptSegmenter", "Scripts", "scripts_of"]

NONE, LATIN, HAN, KANA, OTHER = range(5)
_CLASSES = 5
_PLANE = 0x10000
_LATIN_END = 0x0250
# Of the kana blocks only the letters: their middle dot is written in Chinese names of foreigners.
_RANGES = ((0x3041, 0x3097, KANA), (0x30A1, 0x30FB, KANA), (0x3400, 0x4DC0, HAN), (0x4E00, 0xA000, HAN))


@dataclass(frozen=True, slots=True)
class Scripts:
    """The number of letters of a text in each class."""

    latin: int
    han: int
    kana: int
    other: int

    @property
    def letters(self) -> int:
        """The number of all letters."""
        return self.latin + self.han + self.kana + self.other


def scripts_of(text: str) -> Scripts:
    """Return the number of letters of a folded text in each class; planes 2 and 3 are Han."""
    code_points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    counts = class_counts(code_points, _classes()).tolist()
    return Scripts(latin=counts[LATIN], han=counts[HAN], kana=counts[KANA], other=counts[OTHER])


@kernel
def class_counts(code_points: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the number of letters in each class: int64[5].

    code_points: uint32[n]. classes: uint8[65536], of the first plane.
    """
    counts = np.zeros(_CLASSES, dtype=np.int64)
    for code in code_points:
        if code < np.uint32(_PLANE):
            counts[classes[code]] += 1
        elif np.uint32(2 * _PLANE) <= code < np.uint32(4 * _PLANE):
            counts[HAN] += 1
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


# Plain ranges in `re` are ten times as fast as properties in `regex`.
_HAN = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0003ffff]")
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
        return self.for_text(text).cut(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, each with its part of speech."""
        return self.for_text(text).tag(text)

    def for_text(self, text: str, language: str | None = None) -> Segmenter:
        """Return the segmenter for a folded text. language: the BCP 47 tag that the page states, if any."""
        if _HAN.search(text) is None:
            return self._other
        stated = language[:2].lower() if language else ""
        scripts = scripts_of(text)
        if stated == "ja" or (scripts.kana and HAN_FOR_A_KANA * scripts.kana >= scripts.han):
            return self._other
        may_be_chinese = scripts.han >= scripts.other or stated == "zh"
        return self._chinese if may_be_chinese and LETTERS_FOR_A_HAN * scripts.han >= scripts.letters else self._other
