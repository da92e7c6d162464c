"""The main text of a tree; the only caller of trafilatura.

Settings: `fast`, no comments, no metadata (`statements` is faster), and no deduplication, since
trafilatura's is a process-wide cache that discards text it has seen before. Figures:
docs/adr/0006-extraction.md. A tree with more elements than any article has (tables of data, archives of
links) would take trafilatura seconds. All text of the body is used instead, which can still be compared.
trafilatura's log messages are silenced; `Extraction.problem` reports what matters.
"""

import logging
from functools import lru_cache
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

__all__ = ["main_text", "warm_up"]

# trafilatura takes 30 to 80 µs an element; the largest of 987 real pages has 1,021 elements after pruning.
MAX_ELEMENTS = 10_000
_COUNT = etree.XPath("count(//*)")


@lru_cache(maxsize=1)
def _trafilatura() -> Any:
    """Return the module, imported at the first page since it takes 0.4 s, too long for `--help`."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    return trafilatura


@lru_cache(maxsize=1)
def _options() -> Any:
    """Return the settings as one value; trafilatura would else read its file for every page, in 0.2 ms."""
    from trafilatura.settings import Extractor

    return Extractor(output_format="python", fast=True, comments=False, with_metadata=False, dedup=False)


def main_text(root: HtmlElement) -> str:
    """Return the main text, one line a paragraph, empty if there is none. May raise what lxml raises."""
    if _COUNT(root) > MAX_ELEMENTS:
        body = root.find("body")
        return "" if body is None else _lines("\n".join(body.itertext()))
    document = _trafilatura().bare_extraction(root, options=_options())
    if document is None or not document.text:
        return ""
    return _lines(document.text)


def _lines(text: str) -> str:
    """Return the lines that are not empty, without the marks of list items."""
    lines = (line.strip().removeprefix("- ") for line in text.splitlines())
    return "\n".join(line for line in lines if line and line != "-")


def warm_up() -> None:
    """Import what the first page would otherwise wait for."""
    _trafilatura()
    _options()
