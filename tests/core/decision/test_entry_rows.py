"""Live entries as an array: what a snapshot stores."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows, signed, unsigned

UNSIGNED = st.integers(0, (1 << 64) - 1)
MAYBE = st.one_of(st.none(), UNSIGNED)
entries = st.builds(
    Entry,
    st.just(0),
    MAYBE,
    MAYBE,
    MAYBE,
    UNSIGNED,
    indexed=st.booleans(),
    evidence=st.binary(max_size=9),
    text_hash=MAYBE,
    host=st.integers(0, (1 << 32) - 1),
    ordinal=st.integers(0, (1 << 40) - 1),
    keys=st.binary(max_size=9),
    settled=st.booleans(),
)


def values(rows: EntryRows) -> list[Entry]:
    """All entries as values."""
    return list(rows.entries())


def numbered(entries: list[Entry]) -> list[Entry]:
    """The same entries with sequences 1, 2, …."""
    return [replace(entry, sequence=number) for number, entry in enumerate(entries, 1)]


@given(st.lists(entries))
def test_entries_survive_the_array(some: list[Entry]) -> None:
    """Every field is the same afterwards, absent values and the highest bit included."""
    some = numbered(some)
    rows = EntryRows.from_entries(some)
    assert values(rows) == some
    assert values(EntryRows(np.frombuffer(rows.rows.tobytes(), rows.rows.dtype), rows.evidence)) == some


@given(st.lists(entries, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12), st.integers(1, 5))
def test_a_part_has_its_own_evidence_and_keys(some: list[Entry], chosen: list[bool], size: int) -> None:
    """Chosen rows and pieces are the entries that they name, each with its bytes."""
    some = numbered(some)
    rows = EntryRows.from_entries(some)
    mask = np.array(chosen[: len(some)], np.bool_)
    assert values(rows.where(mask)) == [entry for entry, wanted in zip(some, chosen, strict=False) if wanted]
    assert [entry for piece in rows.pieces(size) for entry in values(piece)] == some
    assert rows.settled.tolist() == [entry.settled for entry in some]


@given(MAYBE)
def test_a_column_of_signed_integers_keeps_all_bits(value: int | None) -> None:
    """SQLite has no others."""
    stored = signed(value)
    assert stored is None or -(1 << 63) <= stored < 1 << 63
    assert unsigned(stored) == value
