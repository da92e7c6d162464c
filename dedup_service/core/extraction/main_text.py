"""The main text of a tree: the one place that calls trafilatura.

Settings: `fast`, no comments, no metadata (ours are cheaper, see `statements`), its own deduplication off: it is
a process-wide cache that discards what it has seen. Figures: docs/adr/0006-extraction.md.
A tree of more elements than any article has (tables of data, archives of links) would take it seconds; all of the
body's text is taken instead, which is still something to compare.
Its log messages are silenced: what they say is in `Extraction.problem`.
"""

import logging
from functools import lru_cache
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

__all__ = ["main_text", "warm_up"]

# trafilatura takes 30 to 80 µs for an element; the largest of 987 real pages has 1,021 after pruning.
MAX_ELEMENTS = 10_000
_COUNT = etree.XPath("count(//*)")


@lru_cache(maxsize=1)
def _trafilatura() -> Any:
    """The module, imported at the first page: 0.4 s that `--help` need not spend."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    return trafilatura


@lru_cache(maxsize=1)
def _options() -> Any:
    """Settings of trafilatura as one value: it would read them from its file for every page, 0.2 ms each time."""
    from trafilatura.settings import Extractor

    return Extractor(output_format="python", fast=True, comments=False, with_metadata=False, dedup=False)


def main_text(root: HtmlElement) -> str:
    """Main text, one line a paragraph; empty where trafilatura finds nothing. May raise what lxml raises."""
    if _COUNT(root) > MAX_ELEMENTS:
        body = root.find("body")
        return "" if body is None else _lines("\n".join(body.itertext()))
    document = _trafilatura().bare_extraction(root, options=_options())
    if document is None or not document.text:
        return ""
    return _lines(document.text)


def _lines(text: str) -> str:
    """The lines that hold something, without the marks of list items."""
    lines = (line.strip().removeprefix("- ") for line in text.splitlines())
    return "\n".join(line for line in lines if line and line != "-")


def warm_up() -> None:
    """Import what the first page would wait for."""
    _trafilatura()
    _options()
