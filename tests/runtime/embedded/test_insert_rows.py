"""Rows that are inserted many at a time are those that were given."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.embedded.database import insert_rows

VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])) | st.binary()


def table(columns: str) -> sqlite3.Connection:
    """An empty table `kept` in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE kept ({columns})")
    return connection


@given(st.lists(st.tuples(VALUES, VALUES), max_size=200))
def test_all_rows_are_there_in_their_order(rows: list[tuple[object, object]]) -> None:
    """Whatever their number and values."""
    connection = table("a, b")
    insert_rows(connection, "INSERT INTO kept", "(?, ?)", iter(rows))
    assert connection.execute("SELECT a, b FROM kept ORDER BY rowid").fetchall() == rows


def test_rows_are_refused_together_with_their_transaction() -> None:
    """A row that breaks a rule of the table raises, and the rows before it go with the transaction."""
    connection = table("a UNIQUE")
    connection.execute("BEGIN")
    with pytest.raises(sqlite3.IntegrityError):
        insert_rows(connection, "INSERT INTO kept", "(?)", [(number % 99,) for number in range(100)])
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
