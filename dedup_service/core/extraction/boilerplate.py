"""Parse a page to one lxml tree for all later steps, and remove lists of links and empty elements.

Parsing: the page is parsed as UTF-8 bytes, because lxml refuses a str that carries an encoding declaration.
Control characters are removed from the bytes first (`without_control_characters`), and attributes of a tag with too
many are cut (`crowded_tags`). libxml2 chooses the class of the elements, instead of Python, which lxml.html would ask
for every element: that would be a fifth of extraction's time.

Pruning: "related articles", rankings and menus, which trafilatura's fast mode leaves in the text of many
news pages, make two different articles of one site alike, and two copies of one article on different sites
unlike. A block is removed if it has at least two links and either nearly all of its text is link text, or half of it
is and no run of text outside links is as long as a sentence. A block with the article has long runs of text, so it
stays. Elements without text, scripts and form controls are removed too, and inline markup is unwrapped: each element
is looked at some 20 times later. lxml lists the elements with their texts, and a compiled loop adds the numbers up
(`removable`); with a Python call for each element, pruning took one and a half times as long. Measured:
docs/adr/0006-extraction.md.

Remove the characters that lxml refuses to write, raw or as references, from a page in UTF-8.

trafilatura gives up on a page with them. One compiled pass finds out whether the page may have any, in a tenth of
the time of removing them: of 987 real pages, most have none.

Find lists of links and empty elements from the numbers of a tree, one row an element.

Each element sums up what is inside it: characters of text, characters of link text, links, and the longest run of
text outside links. Rows are in document order, so the children of an element follow it: one loop from the last row
to the first adds each element to its parent. Elements nested deeper than MAX_DEPTH count as text of the one above
them.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt
from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.crowded_tags import without_crowded_tags
from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating

LINK_SHARE = 0.5
FARM_SHARE = 0.75
SENTENCE_LENGTH = 40
MIN_LINKS = 2
MAX_DEPTH = 200
# Kinds of elements: of an element that may be a list of links, that stays if it is empty, that is a link.
BLOCK, SEPARATOR, LINK = 1, 2, 4
Numbers = npt.NDArray[np.int64]


@kernel
def removable(children: Numbers, kinds: Numbers, before: Numbers, after: Numbers) -> Numbers:
    """Return the rows of the outermost elements to remove: int64[m], ascending.

    All: int64[n], in document order, the root first. children: elements directly inside. kinds: sums of BLOCK,
    SEPARATOR and LINK. before, after: characters of the text before the first child, and behind the end tag.
    """
    size = len(children)
    parents, depths = _parents(children)
    texts, runs = before.copy(), before.copy()
    linked, links = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    removed = np.zeros(size, dtype=np.bool_)
    for row in range(size - 1, 0, -1):
        if depths[row] > MAX_DEPTH:
            linked[row], links[row], runs[row] = 0, 0, texts[row]
        else:
            if kinds[row] & LINK:
                linked[row], links[row], runs[row] = texts[row], texts[row] > 0, 0
            removed[row] = _is_removable(kinds[row], texts[row], linked[row], links[row], runs[row])
        parent = parents[row]
        texts[parent] += texts[row] + after[row]
        linked[parent] += linked[row]
        links[parent] += links[row]
        runs[parent] = max(runs[parent], runs[row], after[row])
    return _outermost(removed, parents)


@kernel_inline_allocating
def _parents(children: Numbers) -> tuple[Numbers, Numbers]:
    """Return the row of each element's parent (of the root: 0) and the number of elements around it."""
    size = len(children)
    parents, depths = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    left = children.copy()
    parent = 0
    for row in range(1, size):
        while left[parent] == 0 and parent > 0:
            parent = parents[parent]
        left[parent] -= 1
        parents[row], depths[row] = parent, depths[parent] + 1
        parent = row
    return parents, depths


@kernel_inline
def _is_removable(kind: int, text: int, linked: int, links: int, run: int) -> bool:
    """Whether an element is empty, or is a list of links."""
    if text == 0:
        return not kind & SEPARATOR
    if links < MIN_LINKS or not kind & BLOCK:
        return False
    return linked > (LINK_SHARE if run < SENTENCE_LENGTH else FARM_SHARE) * text


@kernel_inline_allocating
def _outermost(removed: npt.NDArray[np.bool_], parents: Numbers) -> Numbers:
    """Return the rows that are removed and have no removed element around them."""
    rows = np.empty(len(parents), dtype=np.int64)
    found = 0
    for row in range(1, len(parents)):
        if removed[parents[row]]:
            removed[row] = True
        elif removed[row]:
            rows[found] = row
            found += 1
    return rows[:found]


CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # U+FFFE, U+FFFF
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
_CHARACTER, _REFERENCE = 1, 2
_TAB, _LINE_FEED, _RETURN, _SPACE, _AMPERSAND, _HASH = 9, 10, 13, 32, 38, 35


def without_control_characters(page: bytes) -> bytes:
    r"""Return a page, in UTF-8, without control characters and noncharacters, and without references to them.

    >>> without_control_characters(b"<p>a\x00b&#1;c&#65;")
    b'<p>abc&#65;'
    """
    found = suspects(np.frombuffer(page, dtype=np.uint8))
    if found & _CHARACTER:
        page = page.translate(None, CONTROL_BYTES)
        for sequence in NONCHARACTERS:
            page = page.replace(sequence, b"")
    return _CONTROL_REFERENCE.sub(b"", page) if found else page


@kernel
def suspects(page: npt.NDArray[np.uint8]) -> int:
    """Return _CHARACTER if the page may have characters to remove, plus _REFERENCE if it has any reference by number.

    page: uint8[n]. Every condition is evaluated for every byte: with branches, the loop would not use vectors.
    """
    found = 0
    for i in range(len(page)):
        byte = page[i]
        is_control = (byte < _SPACE) & (byte != _TAB) & (byte != _LINE_FEED) & (byte != _RETURN)
        found |= is_control * _CHARACTER
    for i in range(len(page) - 1):
        found |= ((page[i] == _AMPERSAND) & (page[i + 1] == _HASH)) * _REFERENCE
    for i in range(len(page) - 2):
        is_noncharacter = (page[i] == 0xEF) & (page[i + 1] == 0xBF) & (page[i + 2] >= 0xBE)
        found |= is_noncharacter * _CHARACTER
    return found


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
"""Elements that are removed or unwrapped by lxml alone, in a fraction of the time of `remove` and `_unwrap`."""
_SCRIPT = 8
"""Kind of an element whose text nobody sees: JSON-LD, as other scripts are gone. `removable` does not know it."""
# Elements that separate text, or keep a column, even if they are empty.
SEPARATORS = frozenset({"br", "hr", "td", "th", "tr"})
KINDS = {
    tag: BLOCK * (tag in BLOCKS) + SEPARATOR * (tag in SEPARATORS) + LINK * (tag == "a")
    for tag in (*BLOCKS, *SEPARATORS, "a")
} | {"script": _SCRIPT}
_ANCHORS_WITHOUT_TARGET = etree.XPath("descendant::a[not(@href)]")
USELESS = (
    *("script", "style", "noscript", "svg", "iframe", "nav", "template", "select", "button", "object", "link"),
    "meta",
)


def prune(root: HtmlElement) -> int:
    """Remove link lists, empty elements and scripts from a tree, in place.

    Return how many characters of text its body had, lists of links included, but no scripts, menus or forms.
    """
    if next(islice(root.iter(*USELESS, *INLINE), MAX_STRIPPED, None), None) is None:
        _strip_useless(root)
        etree.strip_tags(root, *INLINE)
    else:
        remove([element for element in root.iter(*USELESS) if not _is_json_ld(element)])
        _unwrap(root)
    body = root.find("body")
    if body is None:
        return 0
    useless, characters = _link_lists_and_empty(body)
    remove(useless)
    return characters


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


def _link_lists_and_empty(body: HtmlElement) -> tuple[list[HtmlElement], int]:
    """Return the outermost elements to remove inside the body, in document order, and its characters of text."""
    elements = list(body.iter())
    kind_of = KINDS.get
    kinds = _column([kind_of(element.tag, 0) for element in elements])
    if untargeted := set(_ANCHORS_WITHOUT_TARGET(body)):  # they are no links
        kinds[[element in untargeted for element in elements]] = 0
    before = _column([len(text.strip()) if (text := element.text) else 0 for element in elements])
    after = _column([len(text.strip()) if (text := element.tail) else 0 for element in elements])
    rows = removable(_column([len(element) for element in elements]), kinds, before, after)
    characters = int(before[kinds & _SCRIPT == 0].sum() + after[1:].sum())  # what follows the body is not in it
    return [elements[row] for row in rows.tolist()], characters


def _column(numbers: list[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(numbers, dtype=np.int64, count=len(numbers))


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
