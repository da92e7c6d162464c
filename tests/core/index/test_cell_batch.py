"""Batches of changes and probes, against the same changes and probes one by one and against sets."""

import random
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.index.cell_index import CellAnswers, CellChanges, CellRows
from dedup_service.core.index.cell_table import MAX_ROWS
from tests.oracle.plain_cells import PlainCells, keys_of

Keys = npt.NDArray[np.uint32]


@dataclass
class Step:
    """One change, or a probe: "insert", "remove" or "probe". row: of a change."""

    kind: str
    row: int
    keys: Keys
    sieve: npt.NDArray[np.uint64]


@dataclass
class Three:
    """Cells that get batches, cells that get each step alone, and sets; rows are used again after a removal."""

    slots: int
    levels: int
    batched: CellRows = field(init=False)
    single: CellRows = field(init=False)
    plain: PlainCells = field(init=False)
    paths: dict[int, bytes] = field(default_factory=dict)
    next_ordinal: int = 0
    live: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Ordinal, and number in the sets, of each row."""

    def __post_init__(self) -> None:
        self.batched, self.single = (CellRows(slots=self.slots, levels=self.levels) for _ in range(2))
        self.plain = PlainCells(self.slots)

    def run(self, steps: list[Step]) -> None:
        """Take the steps in all three, and compare what the pages found, the paths and the sizes."""
        changes = [step for step in steps if step.kind != "probe"]
        pages = [step for step in steps if step.kind == "probe"]
        done = np.cumsum([step.kind != "probe" for step in steps])
        due = np.array([at for at, step in zip(done, steps, strict=True) if step.kind == "probe"], np.int64)
        known, ordinals = dict(self.paths), []
        found, probed, paths = [], [], []
        for step in steps:
            if step.kind == "probe":
                rows, before = self.single.probe(step.keys.tobytes(), step.sieve.tobytes())
                numbers = {number: row for row, (_, number) in self.live.items()}
                expected = self.plain.probe(keys_of(step.keys.tobytes(), self.levels), step.sieve.tobytes())
                assert rows.tolist() == sorted(numbers[number] for number in expected)
                found.append(rows.tolist())
                probed.append(before)
                continue
            paths.append(b"")
            if step.kind == "insert":
                self.next_ordinal += 1
                ordinal = number = self.next_ordinal
                paths[-1] = self.paths[step.row] = self.single.insert(
                    step.row, ordinal, step.keys.tobytes(), step.sieve.tobytes()
                )
                self.plain.insert(number, ordinal, keys_of(step.keys.tobytes(), self.levels), step.sieve.tobytes())
                self.live[step.row] = ordinal, number
            else:
                ordinal, number = self.live.pop(step.row)
                path = self.paths.pop(step.row)
                assert self.single.remove(step.row, ordinal, path)
                self.plain.remove(number)
            ordinals.append(ordinal)
        given = [known.pop(step.row, b"") if step.kind == "remove" else b"" for step in changes]
        answers = self.batched.follow(
            changes_of(changes, ordinals, given, self.levels), due, *columns(pages, self.levels)
        )
        assert rows_of(answers) == found
        assert answers.probed.tolist() == probed
        assert answers.paths == paths
        sizes = self.batched.statistics()
        assert (sizes.entries, sizes.cells, sizes.overflowed) == self.plain.counts()
        assert sizes == self.single.statistics()


def columns(steps: list[Step], levels: int) -> tuple[Keys, npt.NDArray[np.uint64]]:
    """Keys and sieves of steps."""
    keys = np.array([step.keys for step in steps], np.uint32).reshape(-1, PARTS, levels)
    return keys, np.array([step.sieve for step in steps], np.uint64).reshape(-1, 2)


def changes_of(steps: list[Step], ordinals: list[int], paths: list[bytes], levels: int) -> CellChanges:
    """Changes as a batch."""
    return CellChanges(
        np.array([step.row for step in steps], np.uint32),
        np.array(ordinals, np.int64),
        np.array([step.kind == "remove" for step in steps], np.bool_),
        *columns(steps, levels),
        paths,
    )


def rows_of(answers: CellAnswers) -> list[list[int]]:
    """The rows that each page found."""
    return [part.tolist() for part in np.split(answers.rows, answers.offsets[1:-1])] if len(answers.probed) else []


def steps_of(chosen: random.Random, three: Three, count: int, most_keys: int) -> list[Step]:
    """Random steps; `three` says which rows are live. Keys are few, so that cells crowd; some pages have none.

    A row that was removed is free for another entry with the next batch.
    """
    live, steps = set(three.live), []
    used = set(live)
    for _ in range(count):
        kind = chosen.choice(["insert", "insert", "remove", "probe", "probe"])
        row = 0
        if kind == "insert":
            row = chosen.choice([row for row in range(len(used) + 3) if row not in used])
            live.add(row)
            used.add(row)
        elif kind == "remove":
            if not live:
                continue
            row = chosen.choice(sorted(live))
            live.remove(row)
        keys = np.zeros((PARTS, three.levels), np.uint32)
        for part in range(PARTS if kind != "remove" and chosen.random() < 0.9 else 0):
            drawn = sorted(chosen.sample(range(1, most_keys + 1), chosen.randint(0, three.levels)))
            keys[part, : len(drawn)] = drawn
        sieve = np.array([chosen.choice([0, (1 << 53) - 1, (1 << 54) - 1]), 0], np.uint64)
        steps.append(Step(kind, row, keys, sieve))
    return steps


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.sampled_from([1, 2, 8, 64]), st.integers(1, 4), st.data())
def test_a_batch_does_what_its_steps_do_one_by_one(
    chosen: random.Random, slots: int, levels: int, data: st.DataObject
) -> None:
    """For any batches one after the other, also empty ones, and removals of rows of the same batch."""
    three = Three(slots, levels)
    for count in data.draw(st.lists(st.sampled_from([0, 1, 5, 60]), max_size=4)):
        three.run(steps_of(chosen, three, count, 6))


@pytest.mark.parametrize(("slots", "levels", "most_keys"), [(8, 8, 1 << 31), (2, 3, 400), (64, 2, 20)])
def test_tables_grow_within_a_batch(slots: int, levels: int, most_keys: int) -> None:
    """Thousands of steps in one batch, then in more: also where all pages together find many rows."""
    chosen, three = random.Random(slots), Three(slots, levels)
    before = three.batched.statistics().bytes
    for count in (4_000, 500, 1):
        three.run(steps_of(chosen, three, count, most_keys))
    assert three.batched.statistics().bytes > before


def own_steps(count: int, seed: int) -> list[Step]:
    """Insertions of pages with random keys, under rows from 0 on."""
    keys = np.random.default_rng(seed).integers(1, 1 << 32, (count, PARTS, LEVELS), np.uint32)
    return [Step("insert", row, own, np.zeros(2, np.uint64)) for row, own in enumerate(keys)]


def gone(steps: list[Step]) -> list[Step]:
    """Removals of what these steps inserted."""
    return [Step("remove", step.row, np.zeros_like(step.keys), step.sieve) for step in steps]


def test_tables_shrink_within_a_batch() -> None:
    """One batch that removes nearly everything gives as much memory back as single removals."""
    three, steps = Three(8, LEVELS), own_steps(3_000, 1)
    three.run(steps)
    full = three.batched.cell_bytes_in_use
    three.run(gone(steps[:2_990]))
    assert three.batched.cell_bytes_in_use == three.single.cell_bytes_in_use < full / 2


def test_a_row_can_come_and_go_several_times_in_a_batch() -> None:
    """A removal without a path undoes the last insertion of its row, and probes see each state."""
    three, (first, second) = Three(2, LEVELS), own_steps(2, 2)
    second.row = 0
    looks = [Step("probe", 0, step.keys, step.sieve) for step in (first, second)]
    three.run([first, *looks, *gone([first]), *looks, second, *looks, *gone([second]), *looks])
    assert len(three.batched) == 0


def follow(index: CellRows, steps: list[Step], paths: list[bytes]) -> CellAnswers:
    """Take changes alone; ordinals are the rows."""
    changes = changes_of(steps, [step.row for step in steps], paths, LEVELS)
    return index.follow(changes, np.empty(0, np.int64), *columns([], LEVELS))


@pytest.mark.parametrize("damage", ["level", "key", "longer", "shorter", "odd", "cut off", "none", "other"])
def test_a_removal_that_the_index_does_not_have_is_refused(damage: str) -> None:
    """The error names the row; earlier changes are applied, and neither this one nor later ones."""
    index, steps = CellRows(), own_steps(6, 3)
    paths = follow(index, steps[:5], [b""] * 5).paths
    wrong = {
        "level": bytes([paths[1][0] + 1]) + paths[1][1:],
        "key": paths[1][:-1] + bytes([paths[1][-1] ^ 1]),
        "longer": paths[1] + bytes(4),
        "shorter": paths[1][:-4],
        "odd": paths[1][:-1],
        "cut off": paths[1][:5],
        "none": b"",
        "other": paths[2],
    }[damage]
    with pytest.raises(StateError, match="row 1 is not in the cells of its path"):
        follow(index, [*gone(steps[:2]), steps[5], *gone(steps[2:3])], [paths[0], wrong, b"", paths[2]])
    sizes = index.statistics()
    assert (len(index), sizes.cells, sizes.overflowed) == (4, 4 * PARTS, 0)
    expected = [step.row for step in steps[1:5]]
    assert [row for step in steps for row in index.probe(step.keys.tobytes(), bytes(16))[0].tolist()] == expected
    assert follow(index, gone(steps[1:5]), paths[1:]).paths == [b""] * 4
    assert len(index) == 0


def test_a_removed_row_cannot_be_removed_again_in_its_batch() -> None:
    """Its path is known from its insertion, and no longer true."""
    index, steps = CellRows(), own_steps(1, 4)
    with pytest.raises(StateError, match="row 0 is not in the cells"):
        follow(index, [*steps, *gone(steps), *gone(steps)], [b""] * 3)
    assert (len(index), index.statistics().cells) == (0, 0)


def test_an_entry_without_keys_is_in_no_cell() -> None:
    """Its path says so, and its removal changes nothing, in the same batch or in another one."""
    index = CellRows()
    empty = Step("insert", 3, np.zeros((PARTS, LEVELS), np.uint32), np.zeros(2, np.uint64))
    path, *_ = follow(index, [empty], [b""]).paths
    assert path == index.insert(4, 4, b"", bytes(16))
    follow(index, [*gone([empty]), empty, *gone([empty])], [path, b"", b""])
    assert (len(index), index.statistics().cells) == (0, 0)


def test_a_row_that_is_too_large_is_refused() -> None:
    """Before anything of the batch is stored."""
    index, steps = CellRows(), own_steps(2, 5)
    steps[1].row = MAX_ROWS
    with pytest.raises(StateError, match="the index is full"):
        follow(index, steps, [b"", b""])
    assert len(index) == 0
