"""Segments as places in a text, against lists of strings."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.segmentation import PageSegments, Segments

STRINGS = st.lists(st.text("ab中𠮷\ud800\0", min_size=1, max_size=4), max_size=8)


@given(STRINGS)
def test_segments_are_the_strings(strings: list[str]) -> None:
    """One by one, and all together."""
    segments = Segments.of(strings)
    assert [segments[place] for place in range(len(segments))] == strings
    assert segments.strings() == strings


@given(st.lists(STRINGS, max_size=4))
def test_joined_segments_are_those_of_all_parts(parts: list[list[str]]) -> None:
    """In their order; parts may be empty, and there may be none."""
    joined = Segments.joined(map(Segments.of, parts))
    assert joined.strings() == [string for part in parts for string in part]


@given(st.lists(st.tuples(STRINGS, STRINGS), max_size=4))
def test_pages_have_the_parts_they_were_joined_from(pages: list[tuple[list[str], list[str]]]) -> None:
    """Body and title of each page in turn, also empty ones."""
    parts = [part for page in pages for part in page]
    joined = PageSegments.joined([Segments.of(part) for part in parts])
    assert [part.strings() for part in joined.parts()] == parts
