"""The tables of settled entries, against tables that had nothing but the entries that are left."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.entry_store import MemoryStore
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.matching import body_decides
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.evidence.packed import pack_evidence
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.text.normalise import letters
from tests.core.index.cells import Cells
from tests.core.index.twins import twin

LAYOUT = IndexLayout(slots=2)
HASHES = [7, twin(7, 1), 8, 1 << 63]
VALUES = [0, 1, 0b11, (1 << 64) - 1]
TEXTS = ["", "short", "long " * 90, "longer " * 90]
EVIDENCE = [pack_evidence("", text, letters(text), b"") for text in TEXTS] + [b"junk"]


def made(seed: int, row: int) -> Entry:
    """A settled entry, without its path; many have the hashes of others, and some have none."""
    chosen = random.Random(seed)
    return Entry(
        10 * row,
        chosen.choice([None, *VALUES]),
        chosen.choice([None, *VALUES]),
        chosen.choice([None, *HASHES]),
        chosen.choice(HASHES),
        chosen.random() < 0.8,
        chosen.choice(EVIDENCE),
        chosen.choice([None, *HASHES]),
        ordinal=row,
        settled=True,
        row=row,
    )


def keys_of(seed: int) -> bytes:
    """Few different keys, so that cells turn entries away."""
    chosen = random.Random(seed)
    return np.array([[chosen.randint(1, 3), *[0] * 7] for _ in range(PARTS)], "<u4").tobytes()


def tables_with_cells() -> EntryTables:
    """Empty tables, whose cells can be asked one by one."""
    tables = EntryTables(LAYOUT)
    tables.cells = Cells(slots=LAYOUT.slots)
    return tables


def answers(tables: EntryTables) -> list[object]:
    """What the tables say of every hash and fingerprint, and their counts."""
    hashed = [
        [list(table.rows(value)) for value in HASHES] + [len(table)]
        for table in (tables.urls, tables.texts, tables.bodies)
    ]
    near = {
        channel: [sorted(index.probe(value).sequences.tolist()) for value in VALUES] + [len(index)]
        for channel, index in tables.indexes.items()
    }
    cells = tables.cells
    assert isinstance(cells, Cells)
    found = [cells.probe(keys_of(seed), bytes(16))[0].tolist() for seed in range(12)]
    sizes = tables.cells.statistics()
    return [hashed, near, found, (sizes.entries, sizes.cells, sizes.overflowed)]


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60),
    st.sets(st.integers(0, 59)),
    st.lists(st.integers(1, 20), min_size=1),
    st.randoms(use_true_random=False),
)
def test_tables_are_a_function_of_the_set_of_rows(
    seeds: list[int], removed: set[int], sizes: list[int], order: random.Random
) -> None:
    """Tables that had more rows answer as those that got the rows that are left, in any order and in other batches."""
    reference, tables = Cells(slots=2), tables_with_cells()
    tables.probe_for(PROFILES["simhash"])
    entries = []
    for row, seed in enumerate(seeds):
        entry = made(seed, row)
        path = reference.insert(row, row, keys_of(seed), bytes(16))
        entries.append(entry.settle(path, row))
    gone = [entry for entry in entries if entry.row in removed]
    left = [entry for entry in entries if entry.row not in removed]
    first = 0
    for size in sizes * len(entries):
        piece = entries[first : first + size]
        if piece:
            tables.restore(np.array([entry.row for entry in piece], np.uint32), EntryRows.from_entries(piece))
        first += size
    if gone:
        tables.remove(np.array([entry.row for entry in gone], np.uint32), EntryRows.from_entries(gone))
        assert isinstance(tables.cells, Cells)
        for entry in gone:
            assert tables.cells.remove(entry.row, entry.ordinal, entry.keys)
    order.shuffle(left)
    again = tables_with_cells()
    again.probe_for(PROFILES["simhash"])
    if left:
        again.restore(np.array([entry.row for entry in left], np.uint32), EntryRows.from_entries(left))
    found = answers(tables)
    assert found == answers(again)
    left.sort(key=lambda entry: entry.row)
    for place, (name, has) in enumerate(
        [
            ("url_hash", lambda _: True),
            ("text_hash", lambda _: True),
            ("body_hash", lambda entry: body_decides(entry.evidence)),
        ]
    ):
        rows = {value: [e.row for e in left if getattr(e, name) == value and has(e)] for value in HASHES}
        twins = sorted(rows[HASHES[0]] + rows[HASHES[1]])  # the table cannot tell these hashes apart
        table = (tables.urls, tables.texts, tables.bodies)[place]
        assert [list(table.rows(value)) for value in HASHES] == [twins, twins, rows[HASHES[2]], rows[HASHES[3]]]
    for channel, index in tables.indexes.items():
        known = [(e.row, value) for e in left if e.indexed and (value := e.channel(channel)) is not None]
        assert len(index) == len(known)
        for value in VALUES:
            near = [row for row, other in known if (value ^ other).bit_count() <= index.radius]
            assert sorted(index.probe(value).sequences.tolist()) == near


def test_an_index_is_built_from_the_store_when_a_rule_first_needs_it() -> None:
    """It has the live rows alone, and goes with the rule; an index of another radius is another one."""
    store, tables = MemoryStore(), EntryTables(LAYOUT)
    entries = [Entry(row, row, row, None, row, settled=True) for row in range(50)]
    numbers = store.append(EntryRows.from_entries(entries))
    store.remove(numbers[::2])
    assert tables.indexes == {}
    tables.probe_for(rule_for(), store)
    words = tables.indexes["words"]
    tables.probe_for(PROFILES["simhash"], store)
    assert set(tables.indexes) == {"words", "body"}
    assert sorted(tables.indexes["body"].probe(0).sequences.tolist()) == [
        row for row in range(1, 50, 2) if row.bit_count() <= tables.indexes["body"].radius
    ]
    tables.probe_for(rule_for(), store)
    assert set(tables.indexes) == {"words"}
    if words.radius == PROFILES["simhash"].radius("words"):
        assert tables.indexes["words"] is words
    tables.probe_for(rule_for(k=7), store)
    assert tables.indexes["words"] is not words
    assert len(tables.indexes["words"]) == 25
