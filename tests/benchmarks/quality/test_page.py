"""Tables into a page: between their marks, nowhere else, and none lost."""

import pytest

from benchmarks.quality.page import names_in, replaced

PAGE = "# A page\n\n<!-- one -->\nold\n<!-- end -->\n\nText.\n\n<!-- two -->\n<!-- end -->\n"


def test_a_table_takes_the_place_of_the_old_one_and_text_stays():
    """Between the marks stands what was measured; all else is as it was."""
    made = replaced(PAGE, {"one": "| new |"})
    assert made == PAGE.replace("old", "| new |")
    assert replaced(made, {"one": "| new |"}) == made


def test_backslashes_of_a_table_are_not_read():
    """A table is put in as it is."""
    assert r"| \1 \g<name> |" in replaced(PAGE, {"two": r"| \1 \g<name> |"})


def test_a_table_without_a_place_is_an_error():
    """A table that the page has no mark for would be lost."""
    with pytest.raises(ValueError, match="no place for three"):
        replaced(PAGE, {"three": "|"})


@pytest.mark.parametrize("page", ["<!-- one -->\n", "<!-- one -->\n<!-- two -->\n<!-- end -->\n", "<!-- end -->\n" * 2])
def test_marks_that_do_not_pair_up_are_an_error(page):
    """A block that is not closed would swallow the rest of the page."""
    with pytest.raises(ValueError, match="marks do not pair up"):
        names_in(page)


def test_a_name_that_comes_twice_is_an_error():
    """Two places for one table would be filled alike unseen."""
    with pytest.raises(ValueError, match="twice"):
        names_in(PAGE.replace("two", "one"))
