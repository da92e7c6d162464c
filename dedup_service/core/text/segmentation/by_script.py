"""How much of a text is written in which script: what decides, at the price of one pass, who cuts it.

Letters are counted in four classes: Han, kana, those of other scripts than Latin, and Latin. Digits, punctuation and
marks are none.

Each text to the segmenter of its script: Chinese to one that knows Chinese, all else to another.

A text is Chinese where Han is at least a twentieth of its letters and no other script than Latin has more, unless its
page says Chinese: an English page that names a person in Chinese is none, a Chinese page full of product names is. It
is Japanese with one kana to five Han, or where its page says so: a headline may have no kana.
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
# Some marks of the kana blocks are written in Chinese names of foreigners (the middle dot), so only letters count.
_RANGES = ((0x3041, 0x3097, KANA), (0x30A1, 0x30FB, KANA), (0x3400, 0x4DC0, HAN), (0x4E00, 0xA000, HAN))


@dataclass(frozen=True, slots=True)
class Scripts:
    """Letters of a text by class."""

    latin: int
    han: int
    kana: int
    other: int

    @property
    def letters(self) -> int:
        """All of them."""
        return self.latin + self.han + self.kana + self.other


def scripts_of(text: str) -> Scripts:
    """Return how many letters of a folded text belong to which class; planes 2 and 3 are Han."""
    code_points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    counts = class_counts(code_points, _classes()).tolist()
    return Scripts(latin=counts[LATIN], han=counts[HAN], kana=counts[KANA], other=counts[OTHER])


@kernel
def class_counts(code_points: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return int64[5], letters by class; classes uint8[65536]: of the first plane."""
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


# Plain ranges in `re`, which finds them ten times faster than properties in `regex`.
_HAN = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0003ffff]")
KANA_SHARE = 5  # Japanese has at least one kana to five Chinese characters; a brand name in Chinese text does not
HAN_SHARE = 20  # of 16,719 crawled pages with any Han two have less, both Russian with a Chinese name


class ScriptSegmenter(Segmenter):
    """Gives each text to the segmenter of its script."""

    def __init__(self, chinese: Segmenter, other: Segmenter) -> None:
        self._chinese = chinese
        self._other = other

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        return self.for_text(text).cut(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same with a part of speech each."""
        return self.for_text(text).tag(text)

    def for_text(self, text: str, language: str | None = None) -> Segmenter:
        """Return the segmenter of a folded text. language: the page's BCP 47 tag, where it states one."""
        if _HAN.search(text) is None:
            return self._other
        stated = language[:2].lower() if language else ""
        found = scripts_of(text)
        if stated == "ja" or (found.kana and KANA_SHARE * found.kana >= found.han):
            return self._other
        maximum = found.han >= found.other or stated == "zh"
        return self._chinese if maximum and HAN_SHARE * found.han >= found.letters else self._other
