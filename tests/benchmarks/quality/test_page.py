"""Tables in a page: written between their markers, nowhere else, and none is lost."""

import pytest

from benchmarks.quality.page import names_in, replaced

PAGE = "# A page\n\n<!-- one -->\nold\n<!-- end -->\n\nText.\n\n<!-- two -->\n<!-- end -->\n"


def test_a_table_replaces_the_old_one_and_nothing_else():
    """Only the text between the markers changes."""
    page = replaced(PAGE, {"one": "| new |"})
    assert page == PAGE.replace("old", "| new |")
    assert replaced(page, {"one": "| new |"}) == page


def test_backslashes_in_a_table_are_literal():
    """Group references in a table are not expanded."""
    assert r"| \1 \g<name> |" in replaced(PAGE, {"two": r"| \1 \g<name> |"})


def test_a_table_without_markers_is_an_error():
    """A table without markers in the page would be lost."""
    with pytest.raises(ValueError, match="no markers for three"):
        replaced(PAGE, {"three": "|"})


@pytest.mark.parametrize("page", ["<!-- one -->\n", "<!-- one -->\n<!-- two -->\n<!-- end -->\n", "<!-- end -->\n" * 2])
def test_unpaired_markers_are_an_error(page):
    """A block that is not closed would replace the rest of the page."""
    with pytest.raises(ValueError, match="markers are not paired"):
        names_in(page)


def test_a_repeated_marker_name_is_an_error():
    """Two blocks for one table are a mistake in the page."""
    with pytest.raises(ValueError, match="twice"):
        names_in(PAGE.replace("two", "one"))
