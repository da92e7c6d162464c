"""The main text of a tree, by trafilatura; its only caller.

Settings: `fast`, no comments, no metadata (`statements` is faster), and no deduplication, since
trafilatura's is a process-wide cache that discards text it has seen before. Figures:
docs/adr/0006-extraction.md. Its log messages are silenced; `Extraction.problem` reports what matters.

What trafilatura would take seconds for is not given to it: a tree with more elements than any article has (tables
of data, archives of links), or one in which it would copy the same text again and again (`text_copied`). All text
of the body is used instead, which can still be compared. JSON-LD in which its expressions would take quadratic
time is removed (`costly_json`).
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import parse, prune, remove
from dedup_service.core.extraction.costly_json import costly_json

# trafilatura takes 30 to 80 µs an element; the largest of 987 real pages has 1,021 elements after pruning.
MAX_ELEMENTS = 10_000
MAX_TEXT_COPIED = 500_000_000
"""Characters that trafilatura may copy, in one or two seconds; 987 real pages need 0.8 million at most."""

UNREAD = ("align", "height", "href", "onclick", "rel", "target", "title", "width")
"""Frequent attributes that trafilatura does not read without links, pictures and metadata."""

_COUNT = etree.XPath("count(//*)")
_LENGTH = etree.XPath("string-length(.)")
_LINKS = etree.XPath("count(//a)")
CHARS_A_LINK = 5_000
"""Characters that trafilatura copies in the time in which it looks at a link inside an element."""


@lru_cache(maxsize=1)
def _extractor() -> Callable[..., Any]:
    """Return trafilatura's function, loaded at the first page: that takes 0.4 s, too long for `--help`."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    return trafilatura.bare_extraction


@lru_cache(maxsize=1)
def _options() -> Any:
    """Return the settings as one value; trafilatura would else read its file for every page, in 0.2 ms."""
    from trafilatura.settings import Extractor

    return Extractor(output_format="python", fast=True, comments=False, with_metadata=False, dedup=False)


def main_text(root: HtmlElement, page_bytes: int) -> str:
    """Return the main text, one line a paragraph, empty if there is none. May raise what lxml raises.

    page_bytes: size of the page in UTF-8, which its text does not exceed in characters.
    """
    if _takes_long(root, page_bytes):
        body = root.find("body")
        if body is None:
            return ""
        etree.strip_elements(body, "script", "style", with_tail=False)
        return _lines("\n".join(body.itertext()))
    remove(costly_json(root))
    etree.strip_attributes(root, *UNREAD)
    document = _extractor()(root, options=_options())
    if document is None or not document.text:
        return ""
    return _lines(document.text)


def _takes_long(root: HtmlElement, page_bytes: int) -> bool:
    elements = _COUNT(root)
    if elements > MAX_ELEMENTS:
        return True
    # Whatever the tree; the length of its text is read only if that of the page is not enough to know.
    linked = CHARS_A_LINK * _LINKS(root)
    if elements * (page_bytes + linked) <= MAX_TEXT_COPIED or elements * (_LENGTH(root) + linked) <= MAX_TEXT_COPIED:
        return False
    return text_copied(root) > MAX_TEXT_COPIED


def text_copied(root: HtmlElement) -> int:
    """Return the estimated number of characters that trafilatura copies.

    It reads the text and the links of an element, and again those of the elements inside it. The texts before and
    after each element that it removes are joined.
    """
    sums: dict[HtmlElement, tuple[int, int, int]] = {}  # text behind the children, children, text in the children
    copied = 0
    for element in reversed(list(root.iter("*"))):  # children before their parent
        behind, between, below = sums.pop(element, (0, 0, 0))
        tag = element.tag
        direct = len(element.text or "") + behind
        text = direct + below + CHARS_A_LINK * (tag == "a")
        copied += text + direct * between
        parent = element.getparent()
        if parent is not None:
            behind, between, below = sums.get(parent, (0, 0, 0))
            sums[parent] = behind + len(element.tail or ""), between + (tag not in ("br", "hr")), below + text
    return copied


def _lines(text: str) -> str:
    """Return the lines that are not empty, without the marks of list items."""
    lines = (line.strip().removeprefix("- ") for line in text.splitlines())
    return "\n".join(line for line in lines if line and line != "-")


def warm_up() -> None:
    """Import and compile what the first page would otherwise wait for."""
    root = parse(b"<p>")
    if root is not None:
        prune(root)
    _extractor()
    _options()
