"""Segmentation: from a text to its words, with their part of speech if a scheme needs it.

`by_script` chooses the segmenter for each text by its script: `chinese` (as jieba cuts), or
`unicode_words`: ICU for Japanese, Thai and other scripts without spaces if icu4py is installed, Unicode word
boundaries for everything else. Which segmenters are in use, and their versions, is part of the space.
"""

from importlib import import_module
from importlib.metadata import version


def segmenter_version(name: str) -> str:
    """Return `name` with its installed version, which is part of the space: dictionaries differ."""
    if name != "icu":
        return f"{name} {version(name)}"
    return f"ICU {import_module('icu4py').icu_version}"
