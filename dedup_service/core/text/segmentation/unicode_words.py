"""Words by Unicode word boundaries, and by ICU's dictionaries for scripts without spaces.

`UnicodeSegmenter` serves English, German, Korean, Arabic and every other script with spaces: a word is the
text between two boundaries, inflected and compound as written. Text in scripts without spaces (Thai, Lao,
Khmer, Burmese, kana) would come out as single characters, which say too little, so they are joined to
overlapping pairs. All segments together give the text back, except where pairs overlap.

`IcuSegmenter` has words for Japanese, Thai, Lao, Khmer and Burmese, by ICU's dictionaries. It needs the
optional library `icu4py` (15 MB with ICU and its dictionaries). Text without such a script goes to the
segmenter for spaced scripts, so its words are the same with and without the library.

Source: Unicode Standard Annex 29 (word boundaries), in `word_boundaries`;
https://unicode-org.github.io/icu/userguide/boundaryanalysis/
"""

from importlib import import_module

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel
from dedup_service.core.text.normalise import code_points
from dedup_service.core.text.page_text import NOTHING, PageTexts
from dedup_service.core.text.segmentation.segmenter import UNKNOWN, Segmenter
from dedup_service.core.text.segmentation.segments import PageSegments, Segments
from dedup_service.core.text.segmentation.word_boundaries import in_pairs, kinds_of_code_points, word_ends


class UnicodeSegmenter(Segmenter):
    """Cuts at Unicode word boundaries, and text in scripts without spaces into pairs of characters."""

    def segments(self, text: str) -> Segments:
        """Return the words and the pieces between them, as places; the text of pairs is longer than `text`."""
        return self.segments_of_pages(_page_of(text)).segments

    def segments_of_pages(self, pages: PageTexts) -> PageSegments:
        """Return the segments of pages."""
        kinds = kinds_of_code_points()
        ends, starts, bodies, has_unspaced = word_ends(pages.points, pages.starts, pages.bodies, *kinds)
        points = pages.points
        if has_unspaced:
            points, ends, starts, bodies = in_pairs(points, ends, starts, bodies, kinds.of_points)
        return PageSegments(Segments(points, ends), starts, bodies)

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        return self.segments(text).strings()

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]


_LOCALE = "root"  # dictionaries are chosen by script and are the same in every locale
# Thai and Lao, Burmese, Khmer, kana, Han.
_ICU_SCRIPTS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0x20000, 0x3FFFF),
)  # fmt: skip
# Folding (NFKC) decomposes these vowels of Thai and Lao; the dictionaries have them composed.
_DECOMPOSED, _COMPOSED = ("\u0e4d\u0e32", "\u0ecd\u0eb2"), ("\u0e33", "\u0eb3")


class IcuSegmenter(Segmenter):
    """Cuts text with an unspaced script by ICU's dictionaries; `spaced` cuts all other text."""

    def __init__(self, spaced: Segmenter) -> None:
        try:
            self._breaker = import_module("icu4py.breakers").WordBreaker
        except ImportError as error:
            raise ConfigurationError(
                "words of Japanese and Thai need icu4py, which is not installed: pip install 'twinsieve[languages]'"
            ) from error
        self._spaced = spaced

    def segments(self, text: str) -> Segments:
        """Return the words and the pieces between them, as places."""
        return Segments.of(self._words(text)) if _is_for_icu(text) else self._spaced.segments(text)

    def segments_of_pages(self, pages: PageTexts) -> PageSegments:
        """Return the segments of pages."""
        for_icu = pages_for_icu(pages.points, pages.starts)
        if not for_icu.any():
            return self._spaced.segments_of_pages(pages)
        spaced = self._spaced.segments_of_pages(pages.chosen(np.flatnonzero(~for_icu).tolist())).parts()
        parts: list[Segments] = []
        for number, is_for_icu in enumerate(for_icu.tolist()):
            if is_for_icu:
                text = pages.page(number)
                parts += [self.segments(text.body), self.segments(text.title)]
            else:
                parts += [next(spaced), next(spaced)]
        return PageSegments.joined(parts)

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them."""
        return self._words(text) if _is_for_icu(text) else self._spaced.cut(text)

    def _words(self, text: str) -> list[str]:
        for decomposed, composed in zip(_DECOMPOSED, _COMPOSED, strict=True):
            if decomposed in text:
                words = self._breaker(text.replace(decomposed, composed), _LOCALE)
                return [word.replace(composed, decomposed) for word in words]
        return list(self._breaker(text, _LOCALE))

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, all of unknown part of speech."""
        return [(word, UNKNOWN) for word in self.cut(text)]


def _is_for_icu(text: str) -> bool:
    page = _page_of(text)
    return bool(pages_for_icu(page.points, page.starts)[0])


def _page_of(text: str) -> PageTexts:
    return PageTexts.joined([code_points(text), NOTHING])


@kernel
def pages_for_icu(points: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which of n pages have a character of a script that ICU has a dictionary for, bool[n].

    points, starts: of `PageTexts`.
    """
    found = np.zeros(len(starts) - 1, np.bool_)
    for page in range(len(found)):
        for code in points[starts[page] : starts[page + 1]]:
            if code < np.uint32(_ICU_SCRIPTS[0][0]):
                continue
            for first, last in _ICU_SCRIPTS:
                found[page] |= np.uint32(first) <= code <= np.uint32(last)
    return found
