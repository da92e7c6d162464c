"""Cut the attributes of a tag that has more of them than any page needs, before libxml2 sees it.

libxml2 walks all attributes of an element to add another: 30,000 take 1 to 10 s, 100,000 take minutes. Expressions
find the tags as the HTML standard does: a `>` in a quoted value ends no tag, and inside comments, scripts, styles and
other raw text there is none. What a tag has beyond MAX_ATTRIBUTES is cut; the largest of 987 real pages has 45 in one
tag. The work is linear in the length of the page: after `<x`, no part of an expression can fail, so none is tried
twice. Python before 3.11.5 matches possessive groups wrongly, so only single characters are repeated so.

Source: HTML Living Standard, 13.2.5 (tokenization). Unlike there, and as in libxml2, `<script/>` has no content.
The escaped states of script data are left out, in which a script contains its own end tag inside a comment.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

MAX_ATTRIBUTES = 500
"""Attributes of a tag that stay. Tags of so many take libxml2 0.3 µs an attribute, as if they had few."""

_ENDS = {b"!": re.compile(rb"--!?>")} | {
    name: re.compile(rb"</(?i:%s)(?![^\s/>])" % name)
    for name in (b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes")
}
"""What ends a comment, and each element whose content has no tags but its own end tag."""

_ATTRIBUTE = rb"""[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]*+))?"""
_NEXT_ATTRIBUTE = re.compile(_ATTRIBUTE + rb"(?P<gap>[\s/]*+)")


@lru_cache(maxsize=2)
def _markup(limit: int) -> re.Pattern[bytes]:
    """Return what finds tags with their first attributes, beginnings of comments, and declarations.

    Groups: `comment`, and `raw` with the `gap` before the end of the tag, where tags inside are no tags; `crowded` if
    more than `limit` attributes follow.
    """
    names = b"|".join(name for name in _ENDS if name != b"!")
    raw = rb"(?=[sStTxXiInN])(?P<raw>(?i:%s))(?![^\s/>])" % names
    usual = rb"""\s[^\s/>="']++="[^"]*+\""""  # saves time, as the first letters do, and the end tags left out
    attributes = rb"(?:%s|[\s/]*+%s){0,%d}" % (usual, _ATTRIBUTE, limit)
    tag = rb"(?:%s%s(?P<gap>[\s/]*+)|/?[A-Za-z][^\s/>]*+%s[\s/]*+)(?P<crowded>[^>])?" % (raw, attributes, attributes)
    return re.compile(rb"<(?!/[A-Za-z]++>)(?:%s|(?P<comment>!)(?=--)|[!?/][^>]*+)" % tag)


def without_crowded_tags(page: bytes, limit: int = MAX_ATTRIBUTES) -> bytes:
    """Return the bytes of a page, in UTF-8, without the attributes of each tag after the first `limit`.

    >>> without_crowded_tags(b"<p a b=1 c=2>word", 2)
    b'<p a b=1 >word'
    """
    edges = [0, *(edge for cut in _cuts(page, limit) for edge in cut), len(page)]
    if len(edges) == 2:
        return page
    return b"".join(page[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def has_crowded_tag(page: bytes) -> bool:
    """Whether a tag has more than MAX_ATTRIBUTES attributes."""
    return any(True for _ in _cuts(page, MAX_ATTRIBUTES))


def _cuts(page: bytes, limit: int) -> Iterator[tuple[int, int]]:
    """Yield where the attributes of each tag after the first `limit` begin and end."""
    at = 0
    while at < len(page):
        for found in _markup(limit).finditer(page, at):
            if found.lastindex:
                break
        else:
            return
        at, gap = found.end(), found["gap"]
        if found["crowded"]:
            start = at = at - 1
            while attribute := _NEXT_ATTRIBUTE.match(page, at):
                at, gap = attribute.end(), attribute["gap"]
            yield start, at
        if found["comment"] or (found["raw"] and not gap.endswith(b"/")):
            end = _ENDS[(found["comment"] or found["raw"]).lower()].search(page, at)
            at = len(page) if end is None else end.start()
