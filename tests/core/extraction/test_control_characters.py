"""Characters that lxml refuses to write are removed from the bytes of a page."""

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from dedup_service.core.extraction.boilerplate import (
    _CONTROL_REFERENCE,
    CONTROL_BYTES,
    NONCHARACTERS,
    without_control_characters,
)

PIECES = (
    *("\0", "\x1f", "\t", "\n", "\r", "\x7f", "&#", "&", "#", "0;", "1", "x1f;", "65535", "a", "图", "\uffff"),
    *("\ufffe",),
)


def removed(page: bytes) -> bytes:
    """Return the page after every step, whether or not it has anything to remove."""
    page = page.translate(None, CONTROL_BYTES)
    for sequence in NONCHARACTERS:
        page = page.replace(sequence, b"")
    return _CONTROL_REFERENCE.sub(b"", page)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join))
@example("&\0#1;")
@example("&\uffff#1;")
@example("a" * 100 + "\uffff")
@example("\x01")
def test_the_search_finds_all_that_is_to_remove(text: str) -> None:
    """A page is the same as if every step had been taken."""
    page = text.encode("utf-8", "replace")
    assert without_control_characters(page) == removed(page)


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
