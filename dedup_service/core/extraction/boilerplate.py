"""Take out what is a list of links and what is empty, before the main text is looked for.

Goal: "related articles", rankings and menus, which trafilatura's fast mode leaves in the text of many news
pages, make two different articles of one site alike and two copies of one article on different sites unlike.
How: one walk, bottom-up. A block goes when it has at least two links and either nearly all of its text is
link text, or half of it is and no run of text outside links is as long as a sentence. Elements without text,
scripts and form controls go too: each costs the extractor some 20 XPath tests.
A block that holds the article holds long runs, so it stays. Measured: docs/adr/0003-extraction.md.
"""

from dataclasses import dataclass

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.tree import remove

__all__ = ["prune"]

LINK_SHARE = 0.5
FARM_SHARE = 0.75
SENTENCE_LENGTH = 40
MIN_LINKS = 2
MAX_DEPTH = 200
BLOCKS = frozenset(
    "article aside center dd div dl dt footer form h1 h2 h3 h4 h5 h6 header li main nav ol p section table tbody td tr ul".split()
)
# Empty ones that still separate text or hold a column.
SEPARATORS = frozenset({"br", "hr", "td", "th", "tr"})
_USELESS = etree.XPath(
    "//script[not(@type='application/ld+json')]|//style|//noscript|//svg|//iframe|//nav|//template|//select|//button"
    "|//object|//link|//meta"
)


@dataclass(slots=True)
class _Sums:
    """Characters of text, of link text, number of links, longest run of text outside links."""

    text: int = 0
    linked: int = 0
    links: int = 0
    run: int = 0

    def add_text(self, text: str | None) -> None:
        if text:
            length = len(text.strip())
            self.text += length
            self.run = max(self.run, length)

    def add(self, other: "_Sums") -> None:
        self.text += other.text
        self.linked += other.linked
        self.links += other.links
        self.run = max(self.run, other.run)


def prune(root: HtmlElement) -> None:
    """Remove link lists, empty elements and scripts from a tree, in place."""
    for element in _USELESS(root):  # type: ignore[union-attr]
        remove(element)  # type: ignore[arg-type]
    body = root.find("body")
    if body is not None:
        doomed: list[HtmlElement] = []
        _walk(body, doomed, 0)
        for element in doomed:
            remove(element)


def _walk(element: HtmlElement, doomed: list[HtmlElement], depth: int) -> _Sums:
    """Sums of an element; collects the outermost elements to remove."""
    sums = _Sums()
    sums.add_text(element.text)
    mark = len(doomed)
    for child in element:
        if depth < MAX_DEPTH:
            sums.add(_walk(child, doomed, depth + 1))
        else:
            sums.add_text("".join(child.itertext()))
        sums.add_text(child.tail)
    if element.tag == "a" and element.get("href") is not None:
        sums = _Sums(text=sums.text, linked=sums.text, links=int(sums.text > 0))
    if depth and (_is_empty(element, sums) or _is_link_list(element, sums)):
        del doomed[mark:]
        doomed.append(element)
    return sums


def _is_empty(element: HtmlElement, sums: _Sums) -> bool:
    return not sums.text and element.tag not in SEPARATORS


def _is_link_list(element: HtmlElement, sums: _Sums) -> bool:
    if sums.links < MIN_LINKS or element.tag not in BLOCKS:
        return False
    if sums.run < SENTENCE_LENGTH:
        return sums.linked > LINK_SHARE * sums.text
    return sums.linked > FARM_SHARE * sums.text
