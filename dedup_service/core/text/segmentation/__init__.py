"""Text to words, with their part of speech where a scheme asks for it.

`by_script` gives each text to the segmenter of its script: `chinese` (rjieba or jieba), `icu_words` (Japanese, Thai and
other scripts without spaces, where icu4py is installed), `unicode_words` (everything else, and the fallback).
Which of them are in use, and their versions, is part of the space.
"""

from importlib import import_module
from importlib.metadata import version

from dedup_service.core.text.segmentation.by_script import ScriptSegmenter
from dedup_service.core.text.segmentation.chinese import SEGMENTERS, chinese_segmenter, parse_user_words
from dedup_service.core.text.segmentation.segmenter import Segmenter
from dedup_service.core.text.segmentation.unicode_words import IcuSegmenter, UnicodeSegmenter

__all__ = [
    "SEGMENTERS",
    "IcuSegmenter",
    "ScriptSegmenter",
    "Segmenter",
    "UnicodeSegmenter",
    "chinese_segmenter",
    "parse_user_words",
    "segmenter_version",
]


def segmenter_version(name: str) -> str:
    """Return `name` with its installed version: part of the space, since another dictionary cuts otherwise."""
    if name != "icu":
        return f"{name} {version(name)}"
    return f"ICU {import_module('icu4py').icu_version}"
