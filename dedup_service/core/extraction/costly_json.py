"""JSON in a page for which trafilatura would take quadratic time.

trafilatura searches JSON-LD and the preloaded posts of Discourse for text, and parses what looks like HTML in it.
Three of its steps are quadratic: two regular expressions, and libxml2 if a tag in the JSON has very many attributes
(`crowded_tags`). JSON of usual size cannot take long. Larger JSON is unescaped, roughly, and searched for the
patterns; all that is found is an upper bound of the steps. The work is linear.
"""

import html
import re

from lxml import etree
from lxml.html import HtmlElement

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
