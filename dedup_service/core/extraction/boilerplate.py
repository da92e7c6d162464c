"""Parse a page to one lxml tree for all later steps, and remove lists of links and empty elements.

Parsing: the text is parsed as UTF-8 bytes, because lxml refuses a str that carries an encoding declaration.
Control characters, raw or as references, are removed from the bytes first: lxml refuses to write them, and
trafilatura gives up on a page with them. Attributes of a tag with too many are cut (`crowded_tags`). libxml2
chooses the class of the elements, instead of Python, which lxml.html would ask for every element: that would be a
fifth of extraction's time.

Pruning: "related articles", rankings and menus, which trafilatura's fast mode leaves in the text of many
news pages, make two different articles of one site alike, and two copies of one article on different sites
unlike. One walk, bottom-up, removes a block if it has at least two links and either nearly all of its text
is link text, or half of it is and no run of text outside links is as long as a sentence. A block with the
article has long runs of text, so it stays. Elements without text, scripts and form controls are removed too,
and inline markup is unwrapped: each element costs some 20 XPath tests later. Measured:
docs/adr/0006-extraction.md.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.crowded_tags import without_crowded_tags

__all__ = ["BINARY", "parse", "prune", "remove"]

CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # U+FFFE, U+FFFF
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
# Formats that servers send as HTML, by their first bytes.
BINARY = {
    b"%PDF-": "PDF",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"PK\x03\x04": "ZIP",
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\xd0\xcf\x11\xe0": "Microsoft Office",
}


@lru_cache(maxsize=1)
def _parser() -> etree.HTMLParser[HtmlElement]:
    parser: etree.HTMLParser[HtmlElement] = etree.HTMLParser(
        collect_ids=False, default_doctype=False, encoding="utf-8", remove_comments=True, remove_pis=True
    )
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=HtmlElement))
    return parser


def parse(text: str) -> HtmlElement | None:
    """Return the root element, or None if the text has no element.

    Raises etree.LxmlError if libxml2 refuses the text.
    """
    data = without_crowded_tags(_without_control_characters(text.encode("utf-8", "replace")))
    if not data.strip():
        return None
    root = etree.fromstring(data, parser=_parser())
    return root if isinstance(root, HtmlElement) else None


def _without_control_characters(data: bytes) -> bytes:
    data = data.translate(None, CONTROL_BYTES)
    for sequence in NONCHARACTERS:
        data = data.replace(sequence, b"")
    return _CONTROL_REFERENCE.sub(b"", data) if b"&#" in data else data


def remove(elements: Iterable[HtmlElement]) -> None:
    """Remove elements, given in document order, from their tree; the text that follows each of them stays.

    The texts that come together are joined once. Joining them at each removal would copy the text before it again
    and again: 80,000 empty elements between words took minutes.
    """
    after: dict[HtmlElement, list[str]] = {}
    at_start: dict[HtmlElement, list[str]] = {}
    for element in elements:
        parent = element.getparent()
        if parent is None:
            continue
        if element.tail:
            previous = element.getprevious()
            texts = at_start.setdefault(parent, []) if previous is None else after.setdefault(previous, [])
            texts.append(element.tail)
        parent.remove(element)
    for element, texts in after.items():
        element.tail = "".join([element.tail or "", *texts])
    for element, texts in at_start.items():
        element.text = "".join([element.text or "", *texts])


JSON_LD = "application/ld+json"
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
MAX_STRIPPED = 2_000
"""Inline elements that are unwrapped by lxml alone, which takes a tenth of the time of `_unwrap`."""
# Elements that separate text, or keep a column, even if they are empty.
SEPARATORS = frozenset({"br", "hr", "td", "th", "tr"})
USELESS = (
    *("script", "style", "noscript", "svg", "iframe", "nav", "template", "select", "button", "object", "link"),
    "meta",
)


Sums = tuple[int, int, int, int]
"""Of an element: characters of text, characters of link text, links, longest run of text outside links.

A tuple, since the walk makes one for every element of the page, and a dataclass would double its time."""


def prune(root: HtmlElement) -> None:
    """Remove link lists, empty elements and scripts from a tree, in place."""
    remove([element for element in root.iter(*USELESS) if element.get("type") != JSON_LD or element.tag != "script"])
    if sum(1 for _ in root.iter(*INLINE)) > MAX_STRIPPED:
        _unwrap(root)
    else:
        etree.strip_tags(root, *INLINE)
    body = root.find("body")
    if body is not None:
        removable: list[HtmlElement] = []
        _walk(body, removable, 0)
        remove(removable)


def _unwrap(root: HtmlElement) -> None:
    """Unwrap inline markup as `strip_tags` does, and join the texts that come together.

    `strip_tags` leaves them as separate nodes; whenever such a text is read, lxml copies all before a node to add it.
    """
    texts: dict[HtmlElement, list[str]] = {}
    tails: dict[HtmlElement, list[str]] = {}
    here = texts.setdefault(root, [])
    for event, element in etree.iterwalk(root, events=("start", "end")):
        is_start = event == "start"
        if element.tag not in INLINE:
            here = (texts if is_start else tails).setdefault(element, [])
        text = element.text if is_start else element.tail
        if text:
            here.append(text)
    etree.strip_tags(root, *INLINE)
    for element, pieces in texts.items():
        if len(pieces) > 1:
            element.text = "".join(pieces)
    for element, pieces in tails.items():
        if len(pieces) > 1:
            element.tail = "".join(pieces)


def _walk(element: HtmlElement, removable: list[HtmlElement], depth: int) -> Sums:
    """Return the sums of an element, and append the outermost elements to remove inside it."""
    mark = len(removable)
    text = run = len(element.text.strip()) if element.text else 0
    linked = links = 0
    for child in element:
        below = _walk(child, removable, depth + 1) if depth < MAX_DEPTH else _flat(child)
        tail = len(child.tail.strip()) if child.tail else 0
        text += below[0] + tail
        linked += below[1]
        links += below[2]
        run = max(run, below[3], tail)
    if element.tag == "a" and element.get("href") is not None:
        linked, links, run = text, int(text > 0), 0
    if depth and (_is_empty(element, text) or _is_link_list(element, text, linked, links, run)):
        del removable[mark:]
        removable.append(element)
    return text, linked, links, run


def _flat(element: HtmlElement) -> Sums:
    """Return the sums of an element that is nested too deep to walk, with all its text outside links."""
    length = sum(len(text.strip()) for text in element.itertext())
    return length, 0, 0, length


def _is_empty(element: HtmlElement, text: int) -> bool:
    return not text and element.tag not in SEPARATORS


def _is_link_list(element: HtmlElement, text: int, linked: int, links: int, run: int) -> bool:
    if links < MIN_LINKS or element.tag not in BLOCKS:
        return False
    return linked > (LINK_SHARE if run < SENTENCE_LENGTH else FARM_SHARE) * text
