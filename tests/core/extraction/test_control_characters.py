"""Characters that lxml refuses to write are removed from the bytes of a page."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from dedup_service.core.extraction.boilerplate import (
    without_control_characters,
)

PIECES = (
    *("\0", "\x1f", "\t", "\n", "\r", "\x7f", "&#", "&", "#", "0;", "1", "x1f;", "65535", "a", "图", "\uffff"),
    *("\ufffe",),
)


def removed(page: str) -> str:
    """Return the page without what is to remove, read one character at a time."""
    page = "".join(c for c in page if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    pieces = re.split(r"(&#(?:[0-9]+|[xX][0-9a-fA-F]+);?)", page)
    return "".join(piece for piece in pieces if not _is_control(piece))


def _is_control(piece: str) -> bool:
    if not (found := re.fullmatch(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?", piece)):
        return False
    number = int(found[1]) if found[1] else int(found[2], 16)
    return (number < 32 and number not in {9, 10, 13}) or number in {0xFFFE, 0xFFFF}


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join))
@example("&\0#1;")
@example("&\uffff#1;")
@example("a" * 100 + "\uffff")
@example("\x01")
def test_all_that_is_to_remove_is_removed(text: str) -> None:
    """A page is the same as if each character and each reference was looked at."""
    page = text.encode("utf-8", "replace")
    assert without_control_characters(page).decode() == removed(page.decode())


def test_every_character_that_lxml_refuses_is_removed() -> None:
    """What remains of all characters can be written, and only those that lxml refuses are gone."""
    text = "".join(map(chr, [*range(0x3100), *range(0xFFF0, 0x10000)]))
    left = without_control_characters(text.encode()).decode()
    etree.Element("p").text = left
    for character in set(text) - set(left):
        try:
            etree.Element("p").text = character
        except ValueError:
            continue
        raise AssertionError(f"U+{ord(character):04X} was removed")


def test_a_page_without_them_is_not_copied() -> None:
    """Most pages have none, and are returned as they are."""
    page = "<p>图书馆 &amp; &lt;\t\r\n".encode()
    assert without_control_characters(page) is page
