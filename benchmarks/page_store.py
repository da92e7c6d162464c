"""Store of kept pages: appends, random reads warm and cold, and memory that grows with the rows.

Data: generated rows and evidence (numpy's PCG64, seed 2026), evidence of --evidence bytes on average and names of
some 60. Each part prints its figures (`benchmarks.images` has the tables):

    append   rows a second in batches of 256, bytes on disk a row, RssAnon a row beside the start
    disk     random reads of 4 KiB a second from the same files, with 32 threads
    read     evidence of random rows a second in batches of --batch, in the page cache, and from the disk after the
             cache was dropped (posix_fadvise), verified for the first time and again; reads a row

    python -m benchmarks.page_store [--rows 1000000] [--evidence 400] [--batch 256] [--folder DIR]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.runtime.store.manifest import StoreLabel
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.stored_rows import StoredNames

SEED = 2026
APPENDED = 256
DISK_THREADS = 32
LABEL = StoreLabel("benchmark", "benchmark")


def anonymous_bytes() -> int:
    """Return RssAnon and RssShmem of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))


def drop_cache(folder: Path) -> None:
    """Drop the files of `folder` from the page cache; they must not be mapped."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


@contextmanager
def opened(folder: Path) -> Iterator[PageStore]:
    """Open the store in `folder` and close it."""
    store = PageStore.open(folder, LABEL)
    try:
        yield store
    finally:
        store.close()


def batches(rows: int, evidence: int) -> Iterator[tuple[EntryRows, list[StoredNames]]]:
    """Yield generated pages, APPENDED at a time, with evidence of half to one and a half times `evidence` bytes."""
    generator = np.random.default_rng(SEED)
    content = generator.bytes(APPENDED * evidence * 2)
    for first in range(0, rows, APPENDED):
        batch = np.zeros(min(APPENDED, rows - first), ROW)
        batch["sequence"] = np.arange(first, first + len(batch))
        batch["words"] = generator.integers(0, 1 << 64, len(batch), np.uint64)
        batch["evidence_bytes"] = generator.integers(evidence // 2, evidence * 3 // 2, len(batch))
        names = [StoredNames(f"http://site/{n}", f"http://site/{n}", f"title of page {n}") for n in batch["sequence"]]
        yield EntryRows(batch, content[: int(batch["evidence_bytes"].sum())]), names


def measure_append(folder: Path, rows: int, evidence: int) -> None:
    """Fill a store and print the rate, its size and its memory."""
    with opened(folder) as store:
        for entries, names in batches(APPENDED * 8, evidence):  # compiles, and allocates what does not grow
            store.append(entries, names)
        before, total, processor, longest = anonymous_bytes(), 0.0, 0.0, 0.0
        for entries, names in batches(rows, evidence):
            took, used = seconds(lambda entries=entries, names=names: store.append(entries, names))  # type: ignore[misc]
            total, processor, longest = total + took, processor + used, max(longest, took)
        memory = anonymous_bytes() - before
        begin = time.perf_counter()
        store.commit(1, "")
        committed = time.perf_counter() - begin
        disk = store.disk_bytes()
        print(
            f"append: {rows / total:,.0f} rows/s ({processor / rows * 1e6:.1f} µs of processor a row), "
            f"the longest batch {longest * 1e3:.1f} ms, commit {committed:.2f} s; "
            f"bytes a row: {sum(disk.values()) / len(store):.0f} on disk ({disk}), {memory / rows:.3f} RssAnon, "
            f"{store.memory_bytes() / len(store):.3f} by own count"
        )


def measure_reads(folder: Path, batch: int, limit_s: float = 10.0) -> None:
    """Print the rate of random evidence, from the disk for the first time and again, and from the page cache."""
    generator = np.random.default_rng(SEED)
    for title in ("cold, verified", "warm"):
        drop_cache(folder)
        with opened(folder) as store:
            if title == "warm":
                store.verify()
            rate(store, generator, batch, limit_s, title, len(store) // 20 if title != "warm" else 4 * len(store))
            if title == "warm":
                before = anonymous_bytes()
                store.verify()
                print(f"        anonymous memory grew by {anonymous_bytes() - before} bytes in reading all files again")
    with opened(folder) as store:
        store.verify()
        for segment in store._segments.values():  # noqa: SLF001 - what is mapped cannot be dropped otherwise
            for file in segment.files.values():
                file._map.madvise(4) if file._map is not None else None  # noqa: SLF001 - MADV_DONTNEED
        drop_cache(folder)
        rate(store, generator, batch, limit_s, "cold, verified before", len(store) // 20)


def rate(store: PageStore, generator: np.random.Generator, batch: int, limit_s: float, title: str, most: int) -> None:
    """Print rows a second for random batches, their latencies, and reads from the disk a row. most: rows to read."""
    took: list[float] = []
    disk, processor = disk_reads(), time.process_time()
    while sum(took) < limit_s and len(took) * batch < most:
        numbers = generator.integers(0, len(store), batch).astype(np.uint32)
        begin = time.perf_counter()
        store.evidence(numbers)
        took.append(time.perf_counter() - begin)
    processor = time.process_time() - processor
    rows, times = len(took) * batch, np.array(took) * 1e3
    counts = store.counts
    print(
        f"read:   {title}: {rows / sum(took):,.0f} rows/s, a batch of {batch} p50 {np.median(times):.2f} ms, "
        f"p99 {np.quantile(times, 0.99):.2f}, most {times.max():.2f}; "
        f"{processor / rows * 1e6:.2f} µs of processor a row; "
        f"{(disk_reads() - disk) / rows / 1024:.1f} KiB from the disk a row; {counts}"
    )


def measure_disk(folder: Path, limit_s: float = 5.0) -> None:
    """Print random reads of 4 KiB a second that the disk allows: DISK_THREADS threads, evidence files, cold."""
    drop_cache(folder)
    paths = sorted(folder.glob("*.evidence"))
    sizes = np.array([path.stat().st_size for path in paths])
    files = [os.open(path, os.O_RDONLY) for path in paths]
    for file in files:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    until = time.perf_counter() + limit_s

    def read(seed: int) -> int:
        generator, done = np.random.default_rng(seed), 0
        while time.perf_counter() < until:
            at = int(generator.integers(len(files)))
            os.pread(files[at], 4096, int(generator.integers(sizes[at])) & ~4095)
            done += 1
        return done

    with ThreadPoolExecutor(DISK_THREADS) as pool:
        reads = sum(pool.map(read, range(DISK_THREADS)))
    for file in files:
        os.close(file)
    print(f"disk:   {reads / limit_s:,.0f} random reads of 4 KiB a second, {DISK_THREADS} at once")


def disk_reads() -> int:
    """Return the bytes that this process has read from the disk."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(lines["read_bytes"])


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock time and the processor time of a call."""
    begin, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin, time.process_time() - processor


def main() -> None:
    """Run all parts in one folder, which is removed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--evidence", type=int, default=400, help="average bytes a row")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        print(f"{arguments.rows:,} rows; load {os.getloadavg()[0]:.1f}")
        measure_append(folder, arguments.rows, arguments.evidence)
        measure_disk(folder)
        measure_reads(folder, arguments.batch)


if __name__ == "__main__":
    main()
