"""Cut the attributes of a tag that has more of them than any page needs, before libxml2 sees it.

libxml2 walks all attributes of an element to add another: 30,000 take 1 to 10 s, 100,000 take minutes. One pass over
the bytes finds them (`_native.crowding_attributes`). What a tag has beyond MAX_ATTRIBUTES is cut; the largest of 987
real pages has 45 in one tag.
"""

from dedup_service._native import crowding_attributes

MAX_ATTRIBUTES = 500
"""Attributes of a tag that stay. Tags of so many take libxml2 0.3 µs an attribute, as if they had few."""


def without_crowded_tags(page: bytes, limit: int = MAX_ATTRIBUTES) -> bytes:
    """Return the bytes of a page, in UTF-8, without the attributes of each tag after the first `limit`.

    >>> without_crowded_tags(b"<p a b=1 c=2>word", 2)
    b'<p a b=1 >word'
    """
    kept = 0
    pieces = []
    for start, end in crowding_attributes(page, limit):
        pieces.append(page[kept:start])
        kept = end
    return b"".join([*pieces, page[kept:]]) if pieces else page


def has_crowded_tag(page: bytes) -> bool:
    """Whether a tag has more than MAX_ATTRIBUTES attributes."""
    return bool(crowding_attributes(page, MAX_ATTRIBUTES))
