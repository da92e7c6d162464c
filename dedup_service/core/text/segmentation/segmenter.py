"""What every segmenter does: cut a folded text into words and everything between them."""

from typing import Protocol

__all__ = ["UNKNOWN", "Segmenter"]

UNKNOWN = "x"


class Segmenter(Protocol):
    """Cuts a folded text."""

    def cut(self, text: str) -> list[str]:
        """Return the words and everything between them."""
        ...

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the same with a part of speech each, `x` where none is known."""
        ...

    def for_text(self, text: str, language: str | None = None) -> "Segmenter":  # noqa: ARG002
        """Return the segmenter of a folded text; language: the page's BCP 47 tag, where it states one."""
        return self
