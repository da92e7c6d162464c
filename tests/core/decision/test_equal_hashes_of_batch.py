"""Equal hashes of a batch and of what is not settled, against a double loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.equal_hashes import equal_rows

values = st.lists(st.tuples(st.sampled_from([0, 1, 2, 1 << 63, (1 << 64) - 1]), st.booleans()), max_size=60)


@given(values, values)
def test_every_page_gets_the_rows_before_it_that_have_its_value(
    before: list[tuple[int, bool]], batch: list[tuple[int, bool]]
) -> None:
    """Rows come ascending; a page that asks for nothing gets none, and a row without the value is found by nobody."""
    rows = before + batch
    column, there = np.array([row[0] for row in rows], np.uint64), np.array([row[1] for row in rows], np.bool_)
    asked = np.ones(len(batch), np.bool_)
    found = equal_rows(column[len(before) :], asked, column, there.astype(np.uint8) * np.uint8(4), 4, len(before))
    assert len(found.offsets) == len(batch) + 1
    for page, (value, asked) in enumerate(batch):
        expected = [
            row for row, other in enumerate(rows[: len(before) + page]) if asked and other[1] and other[0] == value
        ]
        assert found.of_page(page).tolist() == expected


def test_a_crowd_of_one_value_is_found_whole() -> None:
    """A batch of 512 equal pages behind 4,096 of the same: more than two million pairs."""
    column, flags = np.full(4096 + 512, 7, np.uint64), np.zeros(4096 + 512, np.uint8)
    found = equal_rows(column[4096:], np.ones(512, np.bool_), column, flags, 0, 4096)
    assert np.diff(found.offsets).tolist() == list(range(4096, 4096 + 512))
    assert found.of_page(511).tolist() == list(range(4096 + 511))


@given(values, values)
def test_only_pages_that_ask_get_rows(before: list[tuple[int, bool]], batch: list[tuple[int, bool]]) -> None:
    """Without a flag, all rows count, those of pages that do not ask as well."""
    rows = before + batch
    column, flags = np.array([row[0] for row in rows], np.uint64), np.zeros(len(rows), np.uint8)
    asked = np.array([row[1] for row in batch], np.bool_)
    found = equal_rows(column[len(before) :], asked, column, flags, 0, len(before))
    for page, (value, asks) in enumerate(batch):
        earlier = enumerate(rows[: len(before) + page])
        assert found.of_page(page).tolist() == [row for row, other in earlier if asks and other[0] == value]
