"""The main text of a tree, by trafilatura; its only caller.

Settings: `fast`, no comments, no metadata (`statements` is faster), and no deduplication, since
trafilatura's is a process-wide cache that discards text it has seen before. Figures:
docs/adr/0006-extraction.md. Its log messages are silenced; `Extraction.problem` reports what matters.

What trafilatura would take seconds for is not given to it: a tree with more elements than any article has (tables
of data, archives of links), or one in which it would copy the same text again and again (`text_copied`). All text
of the body is used instead, which can still be compared. JSON-LD in which its expressions would take quadratic
time is removed (`costly_json`).

JSON in a page for which trafilatura would take quadratic time.

trafilatura searches JSON-LD and the preloaded posts of Discourse for text, and parses what looks like HTML in it.
Three of its steps are quadratic: two regular expressions, and libxml2 if a tag in the JSON has very many attributes
(`crowded_tags`). JSON of usual size cannot take long. Larger JSON is unescaped, roughly, and searched for the
patterns; all that is found is an upper bound of the steps. The work is linear.
"""

import html
import logging
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import parse, prune, remove
from dedup_service.core.extraction.crowded_tags import has_crowded_tag

USUAL_CHARS = 20_000
"""JSON of a page up to which nothing is searched; the squares of 20,000 take a second."""

MAX_JSON_CHARS = 2_000_000
"""JSON of a page beyond which it is not read at all."""

MAX_STEPS = 100_000_000

_SCRIPTS = etree.XPath("//script[@type='application/ld+json']")
_PRELOADED = etree.XPath("//div[@id='data-preloaded'][@data-preloaded]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_TYPE_LIST = re.compile(r'"@type"\s*:\s*\[')


def costly_json(root: HtmlElement) -> list[HtmlElement]:
    """Return the elements with JSON that would take long, in document order; none or all that the page has."""
    scripts: list[HtmlElement] = _SCRIPTS(root)
    preloaded: list[HtmlElement] = _PRELOADED(root)
    texts = [script.text or "" for script in scripts] + [element.get("data-preloaded", "") for element in preloaded]
    size = sum(map(len, texts))
    if size <= USUAL_CHARS:
        return []
    if size <= MAX_JSON_CHARS and not any(map(_is_costly, texts)):
        return []
    for element in preloaded:
        del element.attrib["data-preloaded"]
    return scripts


def _is_costly(text: str) -> bool:
    # Preloaded posts are JSON inside JSON, and HTML may be escaped once more.
    readings = [text, once := _unescaped(text), twice := _unescaped(once), html.unescape(once), html.unescape(twice)]
    return any(map(_is_quadratic, readings))


def _is_quadratic(text: str) -> bool:
    lists = len(_TYPE_LIST.findall(text))
    stretches = (piece.count("=") * len(piece) for part in text.split("<") for piece in part.split(">"))
    return (
        lists * len(text) > MAX_STEPS or sum(stretches) > MAX_STEPS or has_crowded_tag(text.encode("utf-8", "replace"))
    )


def _unescaped(text: str) -> str:
    """Return JSON with its escapes replaced, roughly."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)


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
