"""Pages for stores, made from a seed, and the oracle: a store in plain dictionaries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.runtime.store.manifest import StoreLabel
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.stored_rows import StoredNames

LABEL = StoreLabel("a log", "a space")
SEGMENT_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """A batch to append."""

    entries: EntryRows
    names: list[StoredNames]
    texts: list[bytes]

    def __len__(self) -> int:
        return len(self.entries)


def pages(seed: Sequence[int] | int, count: int, first: int = 0, largest: int = 600) -> Pages:
    """Return `count` pages whose sequences begin at `first`, with up to `largest` bytes of evidence each."""
    generator = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    for name in ROW.names or ():
        if name not in {"sequence", "evidence_bytes", "keys_bytes"}:
            rows[name] = generator.integers(0, 1 << 8 * min(ROW[name].itemsize, 7), count)
    rows["sequence"] = np.arange(first, first + count)
    rows["evidence_bytes"] = generator.integers(0, largest + 1, count)
    rows["keys_bytes"] = rows["evidence_bytes"] // 5
    evidence = generator.bytes(int(rows["evidence_bytes"].sum()))
    numbers = [int(number) for number in generator.integers(0, 1 << 30, count)]
    names = [StoredNames(f"id {n}" if n % 2 else f"http://a/{n}", f"http://a/{n}", f"title {n}") for n in numbers]
    texts = [f"text {n}".encode() * (n % 7) for n in numbers]
    return Pages(EntryRows(rows, evidence), names, texts)


@dataclass(slots=True)
class Row:
    """What must be read of a row."""

    row: tuple[Any, ...]
    evidence: bytes
    names: StoredNames | None
    text: bytes | None

    def erase(self) -> None:
        """Make it what an erasure leaves."""
        self.evidence = bytes(len(self.evidence))
        self.names = self.text = None

    def copy(self) -> "Row":
        """Return another row with the same content."""
        return Row(self.row, self.evidence, self.names, self.text)


@dataclass(slots=True)
class Oracle:
    """A store in memory. rows: the live ones by number."""

    rows: dict[int, Row] = field(default_factory=dict)

    def append(self, numbers: npt.NDArray[np.uint32], batch: Pages) -> None:
        """Add a batch under the numbers that the store gave."""
        starts = batch.entries.evidence_starts.tolist()
        for at, number in enumerate(numbers.tolist()):
            size = int(batch.entries.rows["evidence_bytes"][at])
            self.rows[number] = Row(
                batch.entries.rows[at].item(),
                batch.entries.evidence[starts[at] : starts[at] + size],
                batch.names[at],
                batch.texts[at] or None,
            )

    def remove(self, numbers: npt.NDArray[np.uint32]) -> None:
        """Remove rows."""
        for number in numbers.tolist():
            del self.rows[number]


def contents(store: PageStore, numbers: Sequence[int]) -> dict[int, Row]:
    """Return what `store` has at `numbers`, read as one batch."""
    array = np.array(numbers, np.uint32)
    rows, evidence, names, texts = store.rows(array), store.evidence(array), store.names(array), store.texts(array)
    assert evidence.sizes.tolist() == (rows["evidence_bytes"] - rows["keys_bytes"].astype(np.uint32)).tolist()
    return {
        number: Row(rows[at].item(), evidence[at], names[at], texts[at]) for at, number in enumerate(array.tolist())
    }


def assert_equal(store: PageStore, oracle: Oracle) -> None:
    """Check that `store` has the rows of `oracle`, in any order of reading."""
    numbers = sorted(oracle.rows, key=lambda number: number * 0x9E3779B1 % (1 << 32))
    assert len(store) == len(numbers)
    assert store.live(np.array(numbers, np.uint32)).all()
    assert contents(store, numbers) == oracle.rows


def filled(folder: Path, count: int = 200, seed: int = 1) -> tuple[PageStore, Oracle]:
    """Return an open store with `count` pages, and its oracle."""
    store, oracle = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS), Oracle()
    batch = pages(seed, count)
    oracle.append(store.append(batch.entries, batch.names, batch.texts), batch)
    return store, oracle


def assert_opened_again(folder: Path, oracle: Oracle) -> None:
    """A store that is opened now has what the oracle has, and matches its checksums."""
    store = PageStore.open(folder, LABEL)
    assert_equal(store, oracle)
    store.verify()
    store.close()
