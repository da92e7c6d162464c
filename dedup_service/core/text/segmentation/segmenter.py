"""The protocol of segmenters, which cut a folded text into words and the pieces between them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.segmentation.segments import PageSegments, Segments

UNKNOWN = "x"
"""The part of speech of a word that the segmenter does not know."""


class Segmenter(Protocol):
    """Cuts a folded text into words."""

    def cut(self, text: str) -> list[str]:
        """Return the words and the pieces between them (spaces, punctuation), in order."""
        ...

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same pieces, each with its part of speech; `x` if it is unknown."""
        ...

    def segments(self, text: str) -> Segments:
        """Return the same pieces as places."""
        return Segments.of(self.cut(text))

    def segments_of_pages(self, pages: PageTexts) -> PageSegments:
        """Return the segments of pages."""
        texts = map(pages.page, range(len(pages)))
        return PageSegments.joined([self.segments(part) for text in texts for part in (text.body, text.title)])

    def for_text(self, points: npt.NDArray[np.uint32], language: str | None = None) -> "Segmenter":  # noqa: ARG002
        """Return the segmenter for the code points uint32[n] of a folded text.

        language: the BCP 47 tag that the page states, if any.
        """
        return self

    def for_pages(self, pages: PageTexts, languages: Sequence[str | None]) -> list[tuple["Segmenter", "Segmenter"]]:
        """Return the segmenters for the body and for the title of each page, as `for_text` does."""
        return [
            (self.for_text(text.body_points, language), self.for_text(text.title_points, language))
            for text, language in zip(map(pages.page, range(len(pages))), languages, strict=True)
        ]
