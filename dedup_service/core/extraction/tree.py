"""Text → one lxml tree that every later step reads.

How: the text goes in as UTF-8 bytes, because lxml refuses a str that carries an encoding declaration; control
characters, which lxml refuses to write and on which trafilatura gives a page up, are cut from the bytes, raw or as
references. Elements get their class from
libxml2 instead of from Python, which lxml.html asks once for every element: a fifth of extraction's time.
"""

import re
from functools import lru_cache

from lxml import etree
from lxml.html import HtmlElement

__all__ = ["BINARY", "parse", "remove"]

CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # U+FFFE, U+FFFF
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
# Formats that servers send under the name of HTML.
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
    """The root element, or None where the text holds no element. Raises etree.LxmlError on what libxml2 refuses."""
    data = _without_control_characters(text.encode("utf-8", "replace"))
    if not data.strip():
        return None
    root = etree.fromstring(data, parser=_parser())
    return root if isinstance(root, HtmlElement) else None


def _without_control_characters(data: bytes) -> bytes:
    data = data.translate(None, CONTROL_BYTES)
    for sequence in NONCHARACTERS:
        data = data.replace(sequence, b"")
    return _CONTROL_REFERENCE.sub(b"", data) if b"&#" in data else data


def remove(element: HtmlElement) -> None:
    """Take an element out of its tree; the text that follows it stays."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        previous = element.getprevious()
        if previous is None:
            parent.text = (parent.text or "") + element.tail
        else:
            previous.tail = (previous.tail or "") + element.tail
    parent.remove(element)
