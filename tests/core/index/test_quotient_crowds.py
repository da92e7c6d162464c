"""Elements whose homes are crowded, so that runs lie many blocks and pages behind them, against a dictionary."""

import numpy as np
import numpy.typing as npt
import pytest

from dedup_service.core.index.quotient_rebuild import HASH_SHIFT, read_in_order
from dedup_service.core.index.quotient_segment import (
    HASH_BITS,
    USED,
    add,
    located,
    may_have,
    seek,
    set_flag,
    take_out,
    value_at,
)
from dedup_service.core.index.quotient_table import QuotientTable, scratch
from dedup_service.core.kernels import long_kernel

Integers = npt.NDArray[np.int64]


@long_kernel
def put(start: int, hashes: Integers, slots: Integers, table: int) -> int:
    """Add identities, each with its number as value and flagged if that is odd; return where the table must grow."""
    for number in range(start, len(hashes)):
        segment, home, rest = located(hashes[number], slots[number], table)
        _, free = seek(home, rest, segment)
        if not add(free, home, rest, number, segment, table):
            return number
        set_flag(free, number % 2 == 1, segment)
    return len(hashes)


@long_kernel
def find(hashes: Integers, slots: Integers, table: int, found: Integers, possible: npt.NDArray[np.bool_]) -> None:
    """Write the value of each identity, or -1, and whether `may_have` allows for it."""
    for number in range(len(hashes)):
        segment, home, rest = located(hashes[number], slots[number], table)
        place, _ = seek(home, rest, segment)
        found[number] = value_at(place, segment) if place >= 0 else -1
        _, first, _ = located(hashes[number], 0, table)
        possible[number] = may_have(first, slots[number] + 1, rest, segment)


@long_kernel
def take(hashes: Integers, slots: Integers, table: int) -> None:
    """Take identities out that are in the table."""
    for number in range(len(hashes)):
        segment, home, rest = located(hashes[number], slots[number], table)
        place, _ = seek(home, rest, segment)
        take_out(place, home, segment, table)


def crowded_identities(generator: np.random.Generator, slots: int, count: int) -> list[tuple[int, int]]:
    """Return different identities, half of them in eight short ranges of hashes, one of which is the last."""
    ends = np.append(generator.integers(1 << 20, 1 << HASH_BITS, 7), 1 << HASH_BITS)
    near = generator.choice(ends, count) - generator.integers(1, 1 << 18, count)
    anywhere = generator.integers(0, 1 << HASH_BITS, count)
    hashes = np.where(generator.random(count) < 0.5, near, anywhere)
    pairs = zip(hashes.tolist(), generator.integers(0, slots, count).tolist(), strict=True)
    return list(dict.fromkeys(pairs))


def all_found(table: QuotientTable, identities: list[tuple[int, int]]) -> tuple[list[int], list[bool]]:
    """Return the value of each identity, or -1, and whether a quick look allows for it."""
    hashes, slots = np.array(identities, np.int64).T.copy()
    found, possible = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.bool_)
    find(hashes, slots, table.address, found, possible)
    return found.tolist(), possible.tolist()


def read(table: QuotientTable) -> set[tuple[int, int, int, int]]:
    """Return hash, slot, flag and value of all elements, in which no two are alike."""
    elements = set()
    for segment in table._segments:
        columns = scratch()
        count = read_in_order(segment.ctypes.data, table.address, *columns)
        assert count == segment[USED]
        for packed, value in zip(columns[0][:count].tolist(), columns[1][:count].tolist(), strict=True):
            elements.add((packed >> HASH_SHIFT, packed >> 1 & 63, packed & 1, value))
    assert len(elements) == len(table)
    return elements


@pytest.mark.parametrize(("slots", "count"), [(1, 3000), (3, 30_000), (8, 120_000), (64, 20_000)])
def test_crowded_homes_hold_what_a_dictionary_holds(slots: int, count: int) -> None:
    """Whatever lies far behind its home is found, survives growth, splits and removals, and nothing else is found."""
    generator = np.random.default_rng(2026 + slots)
    identities = crowded_identities(generator, slots, count)
    stored, absent = identities[: count // 2], identities[count // 2 :]
    table = QuotientTable(slots)
    columns = np.array(stored, np.int64).T.copy()
    done = 0
    while (done := put(done, *columns, table.address)) < len(stored):
        assert table.grow()
    found, possible = all_found(table, stored)
    assert found == list(range(len(stored)))
    assert all(possible)
    assert set(all_found(table, absent)[0]) == {-1}
    assert read(table) == {(*one, number % 2, number) for number, one in enumerate(stored)}
    gone = generator.permutation(len(stored))[: len(stored) * 3 // 4]
    take(*columns[:, gone], table.address)
    while table.shrink():
        pass
    left = dict.fromkeys(gone.tolist(), -1)
    assert all_found(table, stored)[0] == [left.get(number, number) for number in range(len(stored))]
    assert read(table) == {(*one, number % 2, number) for number, one in enumerate(stored) if number not in left}
