"""The protocol of segmenters, which cut a folded text into words and the pieces between them."""

from typing import Protocol

__all__ = ["UNKNOWN", "Segmenter"]

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

    def for_text(self, text: str, language: str | None = None) -> "Segmenter":  # noqa: ARG002
        """Return the segmenter for a folded text. language: the BCP 47 tag that the page states, if any."""
        return self
