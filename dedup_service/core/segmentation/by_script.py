"""Each text to the segmenter of its script: Chinese to one that knows Chinese, all else to another.

A text is Chinese where Han is at least a twentieth of its letters and no other script than Latin has more, unless its
page says Chinese: an English page that names a person in Chinese is none, a Chinese page full of product names is. It
is Japanese with one kana to five Han, or where its page says so: a headline may have no kana.
"""

import re

from dedup_service.core.segmentation.scripts import scripts_of
from dedup_service.core.segmentation.segmenter import Segmenter

__all__ = ["ScriptSegmenter"]

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
        most = found.han >= found.other or stated == "zh"
        return self._chinese if most and HAN_SHARE * found.han >= found.letters else self._other
