"""Take out what is a list of links and what is empty, before the main text is looked for.

Goal: "related articles", rankings and menus, which trafilatura's fast mode leaves in the text of many news
pages, make two different articles of one site alike and two copies of one article on different sites unlike.
How: one walk, bottom-up. A block goes when it has at least two links and either nearly all of its text is
link text, or half of it is and no run of text outside links is as long as a sentence. Elements without text,
scripts and form controls go too, and inline markup is unwrapped: each element costs some 20 XPath tests later.
A block that holds the article holds long runs, so it stays. Measured: docs/adr/0006-extraction.md.
"""

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
    {"article", "aside", "center", "dd", "div", "dl", "dt", "footer", "form", "header", "li", "main", "nav", "ol", "p"}
    | {"section", "table", "tbody", "td", "tr", "ul", "h1", "h2", "h3", "h4", "h5", "h6"}
)
INLINE = ("span", "font", "b", "strong", "em", "i", "u")
# Empty ones that still separate text or hold a column.
SEPARATORS = frozenset({"br", "hr", "td", "th", "tr"})
_USELESS = etree.XPath(
    "//script[not(@type='application/ld+json')]|//style|//noscript|//svg|//iframe|//nav|//template|//select|//button"
    "|//object|//link|//meta"
)


# Of an element: characters of text, characters of link text, links, longest run of text outside links.
# A bare tuple: the walk makes one for every element of the page, and a dataclass doubles its time.
Sums = tuple[int, int, int, int]


def prune(root: HtmlElement) -> None:
    """Remove link lists, empty elements and scripts from a tree, in place."""
    for element in _USELESS(root):
        remove(element)
    etree.strip_tags(root, *INLINE)
    body = root.find("body")
    if body is not None:
        doomed: list[HtmlElement] = []
        _walk(body, doomed, 0)
        for element in doomed:
            remove(element)


def _walk(element: HtmlElement, doomed: list[HtmlElement], depth: int) -> Sums:
    """Sums of an element; collects the outermost elements to remove."""
    mark = len(doomed)
    text = run = len(element.text.strip()) if element.text else 0
    linked = links = 0
    for child in element:
        below = _walk(child, doomed, depth + 1) if depth < MAX_DEPTH else _flat(child)
        tail = len(child.tail.strip()) if child.tail else 0
        text += below[0] + tail
        linked += below[1]
        links += below[2]
        run = max(run, below[3], tail)
    if element.tag == "a" and element.get("href") is not None:
        linked, links, run = text, int(text > 0), 0
    if depth and (_is_empty(element, text) or _is_link_list(element, text, linked, links, run)):
        del doomed[mark:]
        doomed.append(element)
    return text, linked, links, run


def _flat(element: HtmlElement) -> Sums:
    """Sums of what is nested too deep to walk: all of it is text."""
    length = sum(len(text.strip()) for text in element.itertext())
    return length, 0, 0, length


def _is_empty(element: HtmlElement, text: int) -> bool:
    return not text and element.tag not in SEPARATORS


def _is_link_list(element: HtmlElement, text: int, linked: int, links: int, run: int) -> bool:
    if links < MIN_LINKS or element.tag not in BLOCKS:
        return False
    return linked > (LINK_SHARE if run < SENTENCE_LENGTH else FARM_SHARE) * text
