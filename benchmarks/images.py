"""Images of tables: what a snapshot costs the deciding thread, and how long a restart takes.

Data: generated rows (numpy's PCG64, seed 2026) with eight random keys a page, as in `benchmarks.tables`, one hash of
the URL, the text and the body each, a random fingerprint; evidence is the sieve and the path alone. Parts:

    image     copying and writing the first image of all tables
    snapshot  --more rows in batches of 256, with a step after each: the longest step, the longest `begin_commit`,
              `finish`, and the memory that this took
    due       the next image, written while rows go on being appended
    restore   in a new process, from the disk (the cache is dropped): restore of all tables, with --more rows to apply
              again, beside reading the same files with `readinto`; then once more without a new image
    rebuild   the same tables from the rows of the store

    python -m benchmarks.images [--rows 1000000] [--more 100000] [--folder DIR]
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.page_store import anonymous_bytes, drop_cache
from dedup_service.core.decision.entry_rows import INDEXED, ROW, EntryRows
from dedup_service.core.decision.entry_tables import HashColumn
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.cell_index import CellRows
from dedup_service.core.index.hash_rows import HashRows
from dedup_service.runtime.store.manifest import StoreLabel
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.store_files import table_paths
from dedup_service.runtime.store.table_images import TableImages, Tables

SEED = 2026
LABEL = StoreLabel("benchmark", "benchmark")
FILL, BATCH = 20_000, 256
FLAGS = 1 | 4 | INDEXED | 16
SIEVE_BYTES, PATH_BYTES = 16, PARTS + 4 * PARTS
MB = 1 << 20


def empty_tables() -> Tables:
    """Return the tables of a decider."""
    fields = {"url": "url_hash", "text": "text_hash", "body": "body_hash"}
    hashes = {name: HashColumn(HashRows(), field) for name, field in fields.items()}
    return Tables(hashes, CellRows(), BlockIndex(3))


def batches(first: int, rows: int, size: int) -> Iterator[EntryRows]:
    """Yield generated pages."""
    generator = np.random.default_rng((SEED, first))
    for start in range(first, first + rows, size):
        batch = np.zeros(min(size, first + rows - start), ROW)
        batch["sequence"] = batch["ordinal"] = np.arange(start, start + len(batch))
        for name in ("words", "url_hash", "text_hash", "body_hash"):
            batch[name] = generator.integers(0, 1 << 64, len(batch), np.uint64)
        batch["flags"], batch["evidence_bytes"] = FLAGS, SIEVE_BYTES + PATH_BYTES
        evidence = generator.integers(0, 256, (len(batch), SIEVE_BYTES + PATH_BYTES), np.uint8)
        evidence[:, SIEVE_BYTES : SIEVE_BYTES + PARTS] = 0  # in each part the first level
        yield EntryRows(batch, evidence.tobytes())


def cell_entries(entries: EntryRows) -> tuple[npt.NDArray[np.uint64], bytes]:
    """Return sieves and paths of rows."""
    evidence = np.frombuffer(entries.evidence, np.uint8).reshape(len(entries), -1)
    sieves = np.ascontiguousarray(evidence[:, :SIEVE_BYTES]).view(np.uint64)
    return sieves, evidence[:, SIEVE_BYTES:].tobytes()


def append(store: PageStore, tables: Tables, images: TableImages, entries: EntryRows) -> None:
    """Append pages to the store and the tables."""
    numbers, (sieves, paths) = store.append(entries), cell_entries(entries)
    ordinals = entries.rows["ordinal"].astype(np.int64)
    tables.cells.restore(numbers, ordinals, sieves, paths)
    images.cells_added(numbers, ordinals, paths)
    for column in tables.hashes.values():
        column.add_missing(numbers, entries.rows)
    assert tables.blocks is not None
    tables.blocks.insert_many(numbers.astype(np.int64), entries.rows["words"].astype(np.uint64))


def measure_snapshot(folder: Path, rows: int, more: int) -> None:
    """Fill a store with tables and print what images of it cost."""
    store, tables = PageStore.open(folder, LABEL), empty_tables()
    images = TableImages(store, tables, least_due=more + 1)
    for entries in batches(0, rows, FILL):
        append(store, tables, images, entries)
    began, processor = time.perf_counter(), time.process_time()
    images.complete()
    took, used = time.perf_counter() - began, time.process_time() - processor
    size = next(folder.glob("image-*")).stat().st_size
    print(f"image:    {size / MB:,.0f} MB in {took:.2f} s ({used:.2f} s of processor), {size / rows:.1f} bytes a row")
    store.commit(1, "", images)
    report("snapshot", store, tables, images, batches(rows, more, BATCH))
    images.least_due = 0
    images.due_share = more / 2 / rows
    report("due", store, tables, images, batches(rows + more, more, BATCH))
    images.complete()
    store.commit(4, "", images)
    report("snapshot", store, tables, images, batches(rows + 2 * more, more // 2, BATCH))
    images.close()
    store.close()


def report(title: str, store: PageStore, tables: Tables, images: TableImages, pages: Iterator[EntryRows]) -> None:
    """Append pages with a step after each batch, commit, and print the longest stops."""
    before, steps, used, written = anonymous_bytes(), [], [], []
    for number, entries in enumerate(pages):
        append(store, tables, images, entries)
        began, processor = time.perf_counter(), time.thread_time()
        images.step(4)
        steps.append(time.perf_counter() - began)
        used.append(time.thread_time() - processor)
        written.append(anonymous_bytes() if number % 16 == 0 else 0)
    appended = anonymous_bytes()
    began, processor = time.perf_counter(), time.thread_time()
    pending = store.begin_commit(store.manifest.sequence + 1, "", images)
    stopped, own = time.perf_counter() - began, time.thread_time() - processor
    pending.finish()
    took, times = time.perf_counter() - began, np.array(steps) * 1e3
    print(
        f"{title + ':':9} {len(steps) * BATCH:,} rows: a step {np.median(times):.2f} ms, p99 "
        f"{np.quantile(times, 0.99):.2f}, most {times.max():.2f} (of processor {max(used) * 1e3:.2f}); commit "
        f"{took:.2f} s, of which the caller waits {stopped * 1e3:.1f} ms (of processor {own * 1e3:.1f}); memory "
        f"{(max(written) - before) / MB:+.1f} MB with the rows, {(anonymous_bytes() - appended) / MB:+.1f} MB by the "
        f"commit; load {os.getloadavg()[0]:.1f}"
    )


def read_all(paths: list[Path]) -> float:
    """Return the seconds that reading files takes."""
    buffer, began = bytearray(MB), time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - began


def measure_restore(folder: Path, warm: Path) -> None:
    """Print the time of a restore, in a process of its own. warm: a folder with a small store, to load the kernels."""
    restore(warm)
    store = PageStore.open(folder, LABEL)
    paths = sorted(path for path in table_paths(folder, store.manifest) if path.exists())
    size, rows = sum(path.stat().st_size for path in paths), len(store)
    store.close()
    drop_cache(folder)
    raw = read_all(paths)
    drop_cache(folder)
    before, processor = anonymous_bytes(), time.process_time()
    took, tables, images = restore(folder)
    processor = time.process_time() - processor
    memory = anonymous_bytes() - before
    print(
        f"restore:  {rows:,} rows, {images.changes:,} to apply again, {size / MB:,.0f} MB: {took:.2f} s, read alone "
        f"{raw:.2f} s ({took / raw:.2f} times); processor {processor:.2f} s; memory {memory / rows:.1f} bytes a row, "
        f"{len(tables.cells):,} in the cells; load {os.getloadavg()[0]:.1f}"
    )


def measure_rebuild(folder: Path, warm: Path) -> None:
    """Print the time of building the tables from the rows, in a process of its own."""
    restore(warm, rebuild=True)
    drop_cache(folder)
    took, tables, _ = restore(folder, rebuild=True)
    print(f"rebuild:  {took:.2f} s, {len(tables.cells):,} in the cells; load {os.getloadavg()[0]:.1f}")


def restore(folder: Path, *, rebuild: bool = False) -> tuple[float, Tables, TableImages]:
    """Open a store, restore its tables and return the time that this took."""
    tables, began = empty_tables(), time.perf_counter()
    store = PageStore.open(folder, LABEL)
    images = TableImages(store, tables)
    if rebuild or not images.restore():
        images.rebuild(cell_entries)
    return time.perf_counter() - began, tables, images


def in_a_process(measure: Any, *arguments: Any) -> None:
    """Call `measure` in a new process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as processes:
        processes.submit(measure, *arguments).result()


def main() -> None:
    """Run all parts in one folder, which is removed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--more", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder, warm = Path(name) / "store", Path(name) / "warm"
        print(f"{arguments.rows:,} rows; load {os.getloadavg()[0]:.1f}")
        in_a_process(measure_snapshot, warm, FILL, 2 * BATCH)
        in_a_process(measure_snapshot, folder, arguments.rows, arguments.more)
        in_a_process(measure_restore, folder, warm)
        in_a_process(measure_rebuild, folder, warm)


if __name__ == "__main__":
    main()
