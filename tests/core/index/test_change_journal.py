"""Recorded changes give the table again, or say that they are not complete."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.index.change_journal import ChangeJournal, record
from dedup_service.core.kernels import kernel

CHANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, (1 << 64) - 1)), max_size=30)


@kernel
def change(
    table: npt.NDArray[np.uint64],
    places: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    used: npt.NDArray[np.int64],
    at: npt.NDArray[np.int64],
    new: npt.NDArray[np.uint64],
) -> None:
    """Change words of `table` as a kernel does."""
    for number in range(len(at)):
        table[at[number]] = new[number]
        record(places, words, used, at[number], new[number])


def changed(table: npt.NDArray[np.uint64], journal: ChangeJournal, changes: list[tuple[int, int]]) -> None:
    """Change and record words."""
    at, new = np.array([place for place, _ in changes], np.int64), np.array([word for _, word in changes], np.uint64)
    change(table, journal.places, journal.words, journal.used, at, new)


@given(parts=st.lists(CHANGES, max_size=4))
def test_changes_make_the_table_again(parts: list[list[tuple[int, int]]]) -> None:
    """In order, the last change of a word counts; each call of `take` returns what came after the one before."""
    table, copy, journal = np.zeros(10, np.uint64), np.zeros(10, np.uint64), ChangeJournal(30)
    for changes in parts:
        changed(table, journal, changes)
        assert len(journal) == len(changes)
        taken = journal.take()
        assert taken is not None
        for place, word in zip(*taken, strict=True):
            copy[place] = word
        assert (copy == table).all()


@given(changes=CHANGES)
def test_changes_that_do_not_fit_are_not_returned(changes: list[tuple[int, int]]) -> None:
    """None stands for changes that are not complete; afterwards the journal is empty."""
    table, journal = np.zeros(10, np.uint64), ChangeJournal(5)
    changed(table, journal, changes)
    assert (journal.take() is None) == (len(changes) > 5)
    assert table.tolist() == [dict(changes).get(place, 0) for place in range(10)]
    assert len(journal) == 0


def test_taken_changes_stay_as_they_were() -> None:
    """They are copies: a thread may write them while others are recorded."""
    journal = ChangeJournal(5)
    table = np.zeros(10, np.uint64)
    changed(table, journal, [(1, 1)])
    taken = journal.take()
    changed(table, journal, [(2, 2)])
    assert taken is not None
    assert [part.tolist() for part in taken] == [[1], [1]]
