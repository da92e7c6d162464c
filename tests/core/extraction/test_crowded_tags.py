"""Tags with more attributes than any page needs, which would take libxml2 quadratic time."""

import time

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from dedup_service.core.extraction.boilerplate import parse
from dedup_service.core.extraction.crowded_tags import (
    MAX_ATTRIBUTES,
    has_crowded_tag,
    without_crowded_tags,
)

PIECES = (
    "<", ">", "p", " ", " a", " b=", "=", '"', "'", "/", "<p ", "<div c d", "<!--", "-->", "<script>", "</script>",
    "<title>", "</title >", " b c ", "!", "-", '<style a="', "<?", "</p a>", " e=1", " f", "<textarea>", "</textarea>",
    "<![CDATA[", "]]>", "<svg>", "/>", "<html g", "<body h i=2",
)  # fmt: skip
LIMIT = 3


def attributes(count: int) -> str:
    return "".join(f" a{n}=1" for n in range(count))


def test_an_element_with_100_000_attributes_is_parsed_in_linear_time() -> None:
    """Of an element with 100,000 attributes libxml2 sees 500, and the text of the page stays."""
    root = parse(f"<html><body><p{attributes(100_000)}>word</p><p b=1>other</p></body></html>".encode())
    assert root is not None
    assert [len(element.attrib) for element in root.iter("p")] == [MAX_ATTRIBUTES, 1]
    assert root.text_content() == "wordother"


def test_a_page_without_crowded_tags_is_not_changed() -> None:
    """As many attributes as the limit, in any number of tags, scripts and comments, stay as they are."""
    crowded = attributes(2 * MAX_ATTRIBUTES)
    page = (f"<p{attributes(MAX_ATTRIBUTES)}>x" * 3 + f"<script>a <p{crowded}></script><!-- <p{crowded}> -->").encode()
    assert without_crowded_tags(page) is page


def test_a_value_with_an_end_of_tag_does_not_hide_attributes() -> None:
    """A quoted `>` ends no tag, and a `<p` in a value begins none."""
    page = f"<p x='>' y=\"<p{attributes(MAX_ATTRIBUTES)}>\"{attributes(MAX_ATTRIBUTES)}>word"
    assert without_crowded_tags(page.encode()) == page.replace("a498=1 a499=1>word", ">word").encode()


def test_attributes_of_raw_text_and_end_tags_count() -> None:
    """Crowded tags are found at a script, at an end tag, and after an empty script."""
    for page in (f"<script{attributes(600)}>x</script>", f"</p{attributes(600)}>", f"<script/><p{attributes(600)}>"):
        assert has_crowded_tag(page.encode()), page[:20]
    assert not has_crowded_tag(f"<script><p{attributes(600)}></script>".encode())


def test_megabytes_of_unfinished_markup_take_seconds_at_most() -> None:
    """Nothing is read again and again, whatever is repeated or left open."""
    pieces = (
        *PIECES,
        "<!--<",
        "<script><",
        "<p a",
        "<p a='",
        "<sCript></script ",
        "</title",
        "<title>",
        "<p\n",
        "<p/ ",
    )
    began = time.process_time()
    for piece in pieces:
        without_crowded_tags((piece * (200_000 // len(piece))).encode())
    assert time.process_time() - began < 30


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_element_that_libxml2_finds_has_more(page: str) -> None:
    """Whatever the markup, libxml2 finds no element with more attributes than the limit after the cut."""
    data = without_crowded_tags(page.encode(), LIMIT)
    if not data.strip():
        return
    root = etree.fromstring(data, parser=etree.HTMLParser(encoding="utf-8"))
    assert root is None or max(len(element.attrib) for element in root.iter("*")) <= LIMIT
