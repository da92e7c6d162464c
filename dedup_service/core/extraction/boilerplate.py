"""Parse a page to one lxml tree for all later steps, and remove lists of links and empty elements.

Parsing: the page is parsed as UTF-8 bytes, because lxml refuses a str that carries an encoding declaration.
Control characters are removed from the bytes first (`without_control_characters`), and attributes of a tag with too
many are cut (`crowded_tags`). libxml2 chooses the class of the elements, instead of Python, which lxml.html would ask
for every element: that would be a fifth of extraction's time.

Pruning: "related articles", rankings and menus, which trafilatura's fast mode leaves in the text of many
news pages, make two different articles of one site alike, and two copies of one article on different sites
unlike. A block is removed if it has at least two links and either nearly all of its text is link text, or half of it
is and no run of text outside links is as long as a sentence. A block with the article has long runs of text, so it
stays. Excerpts of other articles and comments, which are not links, are found by their label (`labelled_cards`).
Elements without text, scripts and form controls are removed too, and inline markup is unwrapped: each element
is looked at some 20 times later. Elements nested deeper than MAX_DEPTH count as text of the one above them. Measured:
docs/adr/0006-extraction.md.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.crowded_tags import without_crowded_tags
from dedup_service.core.extraction.labelled_cards import labelled_cards

LINK_SHARE = 0.5
FARM_SHARE = 0.75
SENTENCE_LENGTH = 40
MIN_LINKS = 2
MAX_DEPTH = 200
# Kinds of elements: of an element that may be a list of links, that stays if it is empty, that is a link.
BLOCK, SEPARATOR, LINK = 1, 2, 4


CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
# Expressions that begin with one byte find it in a third of the time of two: so the lookahead.
_NONCHARACTER = re.compile(rb"\xef(?=\xbf)\xbf[\xbe\xbf]")  # U+FFFE, U+FFFF
_CONTROL_REFERENCE = re.compile(
    rb"&(?=#)#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)


def without_control_characters(page: bytes) -> bytes:
    r"""Return a page, in UTF-8, without control characters and noncharacters, and without references to them.

    lxml refuses to write them, and trafilatura gives up on a page with them.

    >>> without_control_characters(b"<p>a\x00b&#1;c&#65;")
    b'<p>abc&#65;'
    """
    return _CONTROL_REFERENCE.sub(b"", _NONCHARACTER.sub(b"", page.translate(None, CONTROL_BYTES)))


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


def parse(page: bytes) -> HtmlElement | None:
    """Return the root element of a page in UTF-8, or None if it has no element.

    Raises etree.LxmlError if libxml2 refuses the page.
    """
    data = without_crowded_tags(without_control_characters(page))
    if not data.strip():
        return None
    root = etree.fromstring(data, parser=_parser())
    return root if isinstance(root, HtmlElement) else None


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
_KEPT = "kept"  # name of scripts with JSON-LD while the others are removed
BLOCKS = frozenset(
    {"article", "aside", "center", "dd", "div", "dl", "dt", "footer", "form", "header", "li", "main", "nav", "ol", "p"}
    | {"section", "table", "tbody", "td", "tr", "ul", "h1", "h2", "h3", "h4", "h5", "h6"}
)
INLINE = ("span", "font", "b", "strong", "em", "i", "u")
MAX_STRIPPED = 2_000
"""Elements that are removed or unwrapped by lxml alone, in a fraction of the time of joining the texts around them."""
_SCRIPT = 8
"""Kind of an element whose text nobody sees: JSON-LD, as other scripts are gone."""
# Elements that separate text, or keep a column, even if they are empty.
SEPARATORS = frozenset({"br", "hr", "td", "th", "tr"})
KINDS = {
    tag: BLOCK * (tag in BLOCKS) + SEPARATOR * (tag in SEPARATORS) + LINK * (tag == "a")
    for tag in (*BLOCKS, *SEPARATORS, "a")
} | {"script": _SCRIPT}
USELESS = (
    *("script", "style", "noscript", "svg", "iframe", "nav", "template", "select", "button", "object", "link"),
    "meta",
)


def prune(root: HtmlElement) -> int:
    """Remove link lists, empty elements and scripts from a tree, in place.

    Return how many characters of text its body had, lists of links included, but no scripts, menus or forms.
    """
    if _has_few(root, USELESS):
        _strip_useless(root)
    else:
        remove([element for element in root.iter(*USELESS) if not _is_json_ld(element)])
    unwrap(root, *INLINE)
    body = root.find("body")
    if body is None:
        return 0
    useless, characters = _link_lists_and_empty(body)
    remove(useless)
    remove(labelled_cards(body))
    return characters


def _has_few(root: HtmlElement, tags: tuple[str, ...]) -> bool:
    return next(islice(root.iter(*tags), MAX_STRIPPED, None), None) is None


def _strip_useless(root: HtmlElement) -> None:
    """Remove scripts and other useless elements; the text that follows each of them stays."""
    kept = [script for script in root.iter("script") if _is_json_ld(script)]
    for script in kept:
        script.tag = _KEPT
    etree.strip_elements(root, *USELESS, with_tail=False)
    for script in kept:
        script.tag = "script"


def _is_json_ld(element: HtmlElement) -> bool:
    return bool(element.tag == "script" and element.get("type") == JSON_LD)


class _Sums:
    """What is inside an element, as far as it was read, in characters.

    text: all of it, white space at the ends of its pieces left out. linked, links: of links with text. run: of the
    longest piece outside links. left: children that were not read. found: elements that were found before it.
    """

    __slots__ = ("element", "found", "kind", "left", "linked", "links", "run", "tail", "text")

    def __init__(self, element: HtmlElement, kind: int, text: int, tail: int, found: int) -> None:
        self.element, self.kind, self.tail, self.found = element, kind, tail, found
        self.text = self.run = text
        self.linked = self.links = 0
        self.left = len(element)


def _link_lists_and_empty(body: HtmlElement) -> tuple[list[HtmlElement], int]:
    """Return the outermost elements to remove inside the body, in document order, and its characters of text."""
    found: list[HtmlElement] = []
    around: list[_Sums] = []
    characters = 0
    for element in body.iter():
        kind = KINDS.get(element.tag, 0)
        if kind == LINK and element.get("href") is None:
            kind = 0
        before = len(text.strip()) if (text := element.text) else 0
        tail = len(text.strip()) if (text := element.tail) else 0
        characters += tail if kind == _SCRIPT else before + tail
        one = _Sums(element, kind, before, tail, len(found))
        while not one.left and around:  # the element ended: add it to the one around it
            if len(around) > MAX_DEPTH:
                one.linked, one.links, one.run = 0, 0, one.text
            elif _is_removable(one):
                found[one.found :] = [one.element]
            elif one.kind == LINK:
                one.linked, one.links, one.run = one.text, 1, 0
            inner, one = one, around.pop()
            one.left -= 1
            one.text += inner.text + inner.tail
            if inner.links:
                one.linked += inner.linked
                one.links += inner.links
            if one.run < inner.run or one.run < inner.tail:
                one.run = max(inner.run, inner.tail)
        around.append(one)
    return found, characters - len((body.tail or "").strip())  # what follows the body is not in it


def _is_removable(one: _Sums) -> bool:
    """Whether an element is empty, or is a list of links."""
    if one.text == 0:
        return not one.kind & SEPARATOR
    if one.links < MIN_LINKS or not one.kind & BLOCK:
        return False
    return one.linked > (LINK_SHARE if one.run < SENTENCE_LENGTH else FARM_SHARE) * one.text


def unwrap(root: HtmlElement, *tags: str) -> None:
    """Unwrap elements as `strip_tags` does; if they are many, join the texts that come together.

    `strip_tags` leaves them as separate nodes; whenever such a text is read, lxml copies all before a node to add it.
    """
    if _has_few(root, tags):
        etree.strip_tags(root, *tags)
        return
    texts: dict[HtmlElement, list[str]] = {}
    tails: dict[HtmlElement, list[str]] = {}
    here = texts.setdefault(root, [])
    for event, element in etree.iterwalk(root, events=("start", "end")):
        is_start = event == "start"
        if element.tag not in tags:
            here = (texts if is_start else tails).setdefault(element, [])
        text = element.text if is_start else element.tail
        if text:
            here.append(text)
    etree.strip_tags(root, *tags)
    for element, pieces in texts.items():
        if len(pieces) > 1:
            element.text = "".join(pieces)
    for element, pieces in tails.items():
        if len(pieces) > 1:
            element.tail = "".join(pieces)
