"""Cut the attributes of a tag that has more of them than any page needs, before libxml2 sees it.

libxml2 walks all attributes of an element to add another: 30,000 take 10 s, 100,000 take minutes. One pass over
the bytes finds the tags as the HTML standard does: a `>` in a quoted value ends no tag, and inside comments,
scripts, styles and other raw text there is none. What a tag has beyond MAX_ATTRIBUTES is cut; the largest of 987
real pages has 45 in one tag. The work is linear in the length of the page.

Source: HTML Living Standard, 13.2.5 (tokenization). Unlike there, and as in libxml2, `<script/>` has no content.
The escaped states of script data are left out, in which a script contains its own end tag inside a comment.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel, kernel_inline

MAX_ATTRIBUTES = 500
"""Attributes of a tag that stay. Tags of so many take libxml2 0.3 µs an attribute, as if they had few."""

_LESS, _GREATER, _SLASH, _EQUAL, _QUOTE, _APOSTROPHE, _BANG, _DASH, _QUESTION = 60, 62, 47, 61, 34, 39, 33, 45, 63
_LOWER = 0x20
_LONGEST_NAME = 9
Bytes = npt.NDArray[np.uint8]


RAW_TEXT = np.array(
    [
        [*name, *[0] * (_LONGEST_NAME - len(name))]
        for name in (b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes")
    ],
    dtype=np.uint8,
)
"""Elements whose content has no tags but their own end tag: uint8[8, 9], names ended by 0."""


def without_crowded_tags(page: bytes) -> bytes:
    """Return the bytes of a page, in UTF-8, without the attributes of each tag after the first MAX_ATTRIBUTES.

    >>> crowded = b"<p " + b" ".join(b"a%d=1" % n for n in range(600)) + b">word"
    >>> without_crowded_tags(crowded).count(b"="), without_crowded_tags(crowded)[-5:]
    (500, b'>word')
    """
    cuts = _cuts(page)
    if not len(cuts):
        return page
    edges = [0, *cuts.ravel().tolist(), len(page)]
    return b"".join(page[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def has_crowded_tag(page: bytes) -> bool:
    """Whether a tag has more than MAX_ATTRIBUTES attributes."""
    return len(_cuts(page)) > 0


def _cuts(page: bytes) -> npt.NDArray[np.int64]:
    return attributes_beyond(np.frombuffer(page, dtype=np.uint8), MAX_ATTRIBUTES, RAW_TEXT)


@kernel
def attributes_beyond(page: Bytes, limit: int, raw_text: Bytes) -> npt.NDArray[np.int64]:
    """Return where the attributes of each tag after the first `limit` begin and end: int64[m, 2].

    page: uint8[n]. raw_text: RAW_TEXT.
    """
    size = len(page)
    cuts = np.empty((size // (2 * limit) + 1, 2), dtype=np.int64)  # an attribute has two bytes at least
    found = i = 0
    while i < size:
        if page[i] != _LESS:
            i += 1
            continue
        following = int(page[i + 1]) if i + 1 < size else 0
        is_end_tag = following == _SLASH and i + 2 < size and _is_letter(int(page[i + 2]))
        if not is_end_tag and not _is_letter(following):
            i = _after_other(page, i, following)
            continue
        name = i + 1 + is_end_tag
        name_end = _end_of(page, name, False)
        i, cut, is_closed = _attributes(page, name_end, limit)
        if cut >= 0:
            cuts[found, 0], cuts[found, 1] = cut, i
            found += 1
        if not is_end_tag and not is_closed:
            i = _after_raw_text(page, i, name, name_end, raw_text)
    return cuts[:found]


@kernel_inline
def _attributes(page: Bytes, i: int, limit: int) -> tuple[int, int, bool]:
    """Return where the attributes that follow a name end, where those after the first `limit` begin, and `/>`.

    There may be no more than `limit`: -1. The last is whether the tag ends in `/>`, which for libxml2 ends the
    element, also a script.
    """
    count, cut, last = 0, -1, i
    while True:
        while i < len(page) and (_is_space(page[i]) or page[i] == _SLASH):
            i += 1
        if i >= len(page) or page[i] == _GREATER:
            return i, cut, i > last and page[i - 1] == _SLASH
        if count == limit:
            cut = i
        count += 1
        i = last = _after_attribute(page, i)


@kernel_inline
def _after_raw_text(page: Bytes, i: int, name: int, name_end: int, raw_text: Bytes) -> int:
    """Return where the end tag of page[name : name_end] begins if that is an element with raw text; else `i`."""
    for row in range(len(raw_text)):
        if _is_named(page, name, name_end, raw_text[row]):
            return _end_tag(page, i, raw_text[row])
    return i


@kernel_inline
def _is_letter(byte: int) -> bool:
    return 97 <= byte | _LOWER <= 122


@kernel_inline
def _is_space(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@kernel_inline
def _end_of(page: Bytes, i: int, at_equal: bool) -> int:
    """Return where the name that begins at `i` ends; at_equal: an equals sign ends it, too."""
    while i < len(page) and not _is_space(page[i]) and page[i] != _SLASH and page[i] != _GREATER:
        if at_equal and page[i] == _EQUAL:
            break
        i += 1
    return i


@kernel_inline
def _after_attribute(page: Bytes, i: int) -> int:
    """Return where the attribute that begins at `i`, with its value, ends."""
    i = _end_of(page, i + 1, True)
    at = i
    while at < len(page) and _is_space(page[at]):
        at += 1
    if at >= len(page) or page[at] != _EQUAL:
        return i
    at += 1
    while at < len(page) and _is_space(page[at]):
        at += 1
    if at < len(page) and (page[at] == _QUOTE or page[at] == _APOSTROPHE):
        quote = page[at]
        at += 1
        while at < len(page) and page[at] != quote:
            at += 1
        return min(at + 1, len(page))
    while at < len(page) and not _is_space(page[at]) and page[at] != _GREATER:
        at += 1
    return at


@kernel_inline
def _after_other(page: Bytes, i: int, following: int) -> int:
    """Return where what begins with the `<` at `i`, no tag, ends: a comment, a declaration, or just that character."""
    size = len(page)
    if following not in (_BANG, _QUESTION, _SLASH):
        return i + 1
    if i + 3 < size and page[i + 1] == _BANG and page[i + 2] == _DASH and page[i + 3] == _DASH:
        i += 2  # `<!-->` is a comment
        while i + 2 < size:
            if page[i] == _DASH and page[i + 1] == _DASH:
                if page[i + 2] == _GREATER:
                    return i + 3
                if page[i + 2] == _BANG and i + 3 < size and page[i + 3] == _GREATER:
                    return i + 4
            i += 1
        return size
    i += 2
    while i < size and page[i] != _GREATER:
        i += 1
    return i


@kernel_inline
def _is_named(page: Bytes, start: int, end: int, name: Bytes) -> bool:
    """Whether page[start : end] is the element `name`, uint8[9] ended by 0, in any case."""
    if end - start > len(name) or (end - start < len(name) and name[end - start]):
        return False
    for k in range(end - start):  # noqa: SIM110 - numba compiles no generators
        if page[start + k] | _LOWER != name[k]:
            return False
    return True


@kernel_inline
def _end_tag(page: Bytes, i: int, name: Bytes) -> int:
    """Return where the end tag of the raw text `name` begins, from `i` on; the end of the page if there is none."""
    while i + 2 < len(page):
        begins = page[i] == _LESS and page[i + 1] == _SLASH and _is_letter(int(page[i + 2]))
        if begins and _is_named(page, i + 2, _end_of(page, i + 2, False), name):
            return i
        i += 1
    return len(page)
