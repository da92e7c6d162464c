"""A limit on memory bounds the kept pages, or refuses more of them, and looks at the memory now and then only."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.runtime.memory_limit import (
    CHECK_EVERY,
    MemoryLimitError,
    ProcessMemoryLimit,
    parse_size,
    process_memory,
)

NINETY_DAYS = Keep.parse("90d")
LIMIT = 1 << 30


class Memory:
    """The memory of a process. used: bytes; reads: how often it was asked for."""

    def __init__(self, used: int = LIMIT + 1) -> None:
        self.used = used
        self.reads = 0

    def __call__(self) -> int:
        self.reads += 1
        return self.used


def step(limit: ProcessMemoryLimit, kept: int, keep: Keep) -> Keep | None:
    """What the limit asks for when as many pages were decided as it waits for."""
    return limit.step(CHECK_EVERY, kept, keep, lambda: LIMIT)


def test_a_state_that_keeps_all_pages_is_refused() -> None:
    """Again and again, until there is memory; the message has the limit, the pages, and what to do."""
    memory = Memory()
    limit = ProcessMemoryLimit(LIMIT, memory)
    for _ in range(2):
        with pytest.raises(MemoryLimitError, match=r"limit is 1\.00 GiB, with 70,000 kept.*--max-memory.*--keep 70000"):
            limit.step(1, 70_000, KEEP_ALL, lambda: LIMIT)
    memory.used = LIMIT
    assert limit.step(1, 70_000, KEEP_ALL, lambda: LIMIT) is None


def test_nobody_is_told_to_bound_pages_that_take_little() -> None:
    """A limit that the program itself fills is to be raised, whether or not pages have bounds."""
    limit = ProcessMemoryLimit(LIMIT, Memory())
    with pytest.raises(MemoryLimitError, match="fewer of them do not help") as raised:
        limit.step(1, 0, KEEP_ALL, lambda: 0)
    assert "--keep" not in str(raised.value)


@pytest.mark.parametrize(("keep", "bound"), [("90d", "90d,70000"), ("100000", "70000"), ("90d,80000", "90d,70000")])
def test_a_state_with_bounds_keeps_as_many_pages_as_it_has(keep: str, bound: str) -> None:
    """The age stays as it is."""
    assert step(ProcessMemoryLimit(LIMIT, Memory()), 70_000, Keep.parse(keep)) == Keep.parse(bound)


@pytest.mark.parametrize(("percent", "bound"), [(90, None), (91, "90d,70000"), (100, "90d,70000")])
def test_kept_pages_are_bounded_before_the_limit_is_reached(percent: int, bound: str | None) -> None:
    """Memory grows by some percent more; a state that keeps all pages goes on up to the limit."""
    memory = Memory(LIMIT * percent // 100)
    found = step(ProcessMemoryLimit(LIMIT, memory), 70_000, NINETY_DAYS)
    assert found == (None if bound is None else Keep.parse(bound))
    assert step(ProcessMemoryLimit(LIMIT, memory), 70_000, KEEP_ALL) is None
    few = ProcessMemoryLimit(LIMIT, memory)
    assert few.step(1, 10, NINETY_DAYS, lambda: LIMIT // 20) is None  # they would not help, and need not yet


def test_the_bound_is_lowered_only_as_long_as_memory_grows() -> None:
    """Memory that stays where it is, although it is above the limit, changes nothing more."""
    memory = Memory()
    limit = ProcessMemoryLimit(LIMIT, memory)
    keep = step(limit, 100_000, NINETY_DAYS)
    assert keep is not None
    for _ in range(5):
        assert step(limit, 100_000, keep) is None
    memory.used = LIMIT * 102 // 100
    lower = step(limit, 100_000, keep)
    assert lower == Keep.parse("90d,98000")
    assert step(limit, 98_000, lower) is None


def test_a_limit_that_the_program_alone_exceeds_is_refused() -> None:
    """Not a single page would be kept otherwise."""
    for used, held in ((2 * LIMIT, LIMIT // 2), (LIMIT + 1, LIMIT // 20)):
        limit = ProcessMemoryLimit(LIMIT, Memory(used))
        with pytest.raises(MemoryLimitError, match="fewer of them do not help"):
            limit.step(1, 10, NINETY_DAYS, lambda held=held: held)


def test_tables_that_do_not_fit_are_not_loaded() -> None:
    """The message has both numbers."""
    limit = ProcessMemoryLimit(LIMIT, Memory(0))
    limit.admit({"cells": LIMIT // 2, "urls": LIMIT // 2}, 9)
    with pytest.raises(MemoryLimitError, match=r"9,000 kept pages take 1\.50 GiB, the limit is 1\.00 GiB"):
        limit.admit({"cells": LIMIT, "urls": LIMIT // 2}, 9000)


@pytest.mark.parametrize("text", ["", "8X", "0", "-1G", "G", "1e9", "8 G iB", "0.0001K"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """The message shows a size."""
    with pytest.raises(ConfigurationError, match="8G"):
        parse_size(text)


@pytest.mark.parametrize(("text", "size"), [("8G", 8 << 30), ("8 GiB", 8 << 30), ("8gb", 8 << 30), ("1.5T", 3 << 39)])
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    """With or without a B."""
    assert parse_size(text) == size


def test_memory_of_this_process_grows_with_what_it_holds() -> None:
    """Anonymous memory counts."""
    before = process_memory()
    held = bytearray(b"\1") * (64 << 20)
    assert process_memory() - before > 48 << 20
    assert held[-1]
