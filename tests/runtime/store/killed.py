"""A store that is killed: what a process does to it, as a function of a seed, and what may be found afterwards.

`python -m tests.runtime.store.killed` is a nursery. For each line of its input, a folder and a seed, it forks a
process that opens the store and goes on for ever with the operation after the last commit, and prints the process id.
So a process begins within milliseconds. Each operation depends on the seed, its number and the rows that are live,
so the oracle finds them again without the process. A finished operation is reported as a line with its number.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.table_images import TableImages
from tests.runtime.store.pages import LABEL, SEGMENT_ROWS, Oracle, Pages
from tests.runtime.store.tables import Model, restored, table_pages

KINDS = ("append", "append", "append", "remove", "erase", "compact", "image", "image", "commit", "commit")


@dataclass(slots=True)
class Step:
    """One operation: its kind, and what it is about. rows: numbers."""

    kind: str
    generator: np.random.Generator
    rows: npt.NDArray[np.uint32]


def step_of(seed: int, number: int, live: list[int]) -> Step:
    """Return operation `number`. live: rows, ascending."""
    generator = np.random.default_rng((seed, number))
    kind = KINDS[int(generator.integers(len(KINDS)))]
    rows = np.array(live, np.uint32)
    if kind == "remove":
        rows = rows[generator.random(len(rows)) < (0.02 if len(rows) < 600 else 0.6)]
    elif kind == "erase":
        rows = rows[generator.integers(0, len(rows), 1)] if live else rows
    return Step(kind, generator, rows)


def batch_size(seed: int, number: int) -> int:
    """Return how many pages operation `number` appends."""
    return 1 + (seed + number) % 60


def batch_of(seed: int, number: int) -> Pages:
    """Return the pages that operation `number` appends."""
    return table_pages((seed, number), batch_size(seed, number), largest=600)


def run(folder: Path, seed: int) -> None:
    """Open the store and go on for ever."""
    store, live, model = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS), Oracle(), Model()
    number = store.manifest.sequence
    replay(seed, number, live, model)
    model.tables, images, _ = restored(store, model)
    while True:
        number += 1
        step = step_of(seed, number, sorted(live.rows))
        if step.kind == "append":
            batch = batch_of(seed, number)
            numbers = store.append(batch.entries, batch.names, batch.texts)
            live.append(numbers, batch)
            model.append(numbers, batch.entries.rows, images)
        elif step.kind == "remove":
            store.remove(step.rows)
            live.remove(step.rows)
            model.remove(step.rows, images)
        elif step.kind == "commit":
            store.commit(number, str(seed), images)
        else:
            keep_in_order(store, step, images)
        os.write(1, f"{number}\n".encode())


def keep_in_order(store: PageStore, step: Step, images: TableImages) -> None:
    """Erase, compact, or go on with an image."""
    if step.kind == "erase":
        for row in step.rows.tolist():
            store.erase(row)
    elif step.kind == "compact":
        store.compact(20_000, wait=bool(step.generator.integers(2)))
    else:
        images.step(3)


def replay(seed: int, last: int, oracle: Oracle, model: Model) -> dict[int, int]:
    """Apply operations 1 to `last`, of which the last was a commit; return the last erasure of each row.

    Row numbers are those of the store: ascending from 0.
    """
    erased: dict[int, int] = {}
    next_row = 0
    for number in range(1, last + 1):
        step = step_of(seed, number, sorted(oracle.rows))
        if step.kind == "append":
            batch = batch_of(seed, number)
            numbers = np.arange(next_row, next_row + len(batch), dtype=np.uint32)
            oracle.append(numbers, batch)
            model.append(numbers, batch.entries.rows, None)
            next_row += len(batch)
        elif step.kind == "remove":
            oracle.remove(step.rows)
            model.remove(step.rows, None)
        elif step.kind == "erase":
            for row in step.rows.tolist():
                oracle.rows[row].erase()
                erased[row] = number
    return erased


def later_erasures(seed: int, last: int, finished: int, oracle: Oracle) -> dict[int, int]:
    """Return rows of `oracle`, which is at `last`, that operations up to `finished` + 1 erase, with the operation."""
    rows, erased, next_row = sorted(oracle.rows), {}, max(oracle.rows, default=-1) + 1
    for number in range(last + 1, finished + 2):
        step = step_of(seed, number, rows)
        if step.kind == "append":
            count = batch_size(seed, number)
            rows += range(next_row, next_row + count)
            next_row += count
        elif step.kind == "remove":
            gone = set(step.rows.tolist())
            rows = [row for row in rows if row not in gone]
        elif step.kind == "erase":
            erased.update(dict.fromkeys([row for row in step.rows.tolist() if row in oracle.rows], number))
    return erased


def main() -> None:
    """Fork a process for each line of the input."""
    store, model = PageStore.open(Path(sys.argv[1]), LABEL, segment_rows=SEGMENT_ROWS), Model()
    _, images, _ = restored(store, model)
    batch = batch_of(1, 59)
    numbers = store.append(batch.entries, batch.names, batch.texts)
    model.append(numbers, batch.entries.rows, None)
    images.complete()
    store.commit(1, "", images)
    restored(store, model)
    store.erase(0)
    store.entries(numbers)
    store.close()
    for line in sys.stdin:
        folder, seed = line.split()
        child = os.fork()
        if not child:
            run(Path(folder), int(seed))
        os.write(1, f"pid {child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"dead\n")


if __name__ == "__main__":
    main()
