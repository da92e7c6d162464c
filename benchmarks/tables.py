"""Tables of candidates: bytes of memory a page, processor time, and the largest copy while an insertion waits.

Each structure is filled alone with generated pages from numpy's PCG64, seed 2026: cells with eight random keys a
page (every page in its first cells, the most cells that pages can need), and the tables of hashes with one hash
a page. "anonymous" is the growth of the anonymous memory of a process that fills this structure alone, in bytes
a page, beside the bytes that the structure reports. "add" is in batches for cells, one by one for hashes;
"probe" in batches of 300 pages that are not stored, as most pages of a crawl are. Times are of the processor.

    python -m benchmarks.tables [--sizes 1000000 10000000]
"""

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.index.cell_index import CellRows
from dedup_service.core.index.hash_rows import HashRows

SEED = 2026
BATCH = 20_000
PROBED, PROBE_BATCH = 30_000, 300
WARM_UP = 20_000
NANOSECONDS = 1e9


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def measure_cells(pages: int) -> list[dict[str, float]]:
    """Return what cells and sieve take of each page, and the time of an insertion and of a probe."""
    if pages > WARM_UP:
        measure_cells(WARM_UP)  # compiles the loops
    generator = np.random.default_rng(SEED)
    index, before, spent = CellRows(), anonymous_bytes(), 0.0
    for first in range(0, pages, BATCH):
        rows = np.arange(first, min(first + BATCH, pages), dtype=np.uint32)
        paths = np.zeros((len(rows), PARTS + 4 * PARTS), np.uint8)  # of each part the level, 0, then its first key
        paths[:, PARTS:] = generator.integers(0, 256, (len(rows), 4 * PARTS), dtype=np.uint8)
        sieves = generator.integers(0, 1 << 64, (len(rows), 2), np.uint64)
        packed = paths.tobytes()
        began = time.thread_time()
        index.restore(rows, rows.astype(np.int64), sieves, packed)
        spent += time.thread_time() - began
    grown = anonymous_bytes() - before
    keys = generator.integers(1, 1 << 32, (PROBED, PARTS, LEVELS), np.uint32)
    sieves = generator.integers(0, 1 << 64, (PROBED, 2), np.uint64)
    index.probe_many(keys[:1], sieves[:1])
    began = time.thread_time()
    for first in range(0, PROBED, PROBE_BATCH):
        index.probe_many(keys[first : first + PROBE_BATCH], sieves[first : first + PROBE_BATCH])
    probing = time.thread_time() - began
    sizes = index.statistics()
    cells = {
        "bytes": (sizes.bytes - sizes.sieve_bytes) / pages,
        "anonymous": (grown - sizes.sieve_bytes) / pages,
        "add ns": spent / pages * NANOSECONDS,
        "probe ns": probing / PROBED * NANOSECONDS,
        "copy": index.largest_copy,
    }
    return [cells, {"bytes": sizes.sieve_bytes / pages}]


def measure_hashes(pages: int) -> dict[str, float]:
    """Return what a table of hashes takes of each page, and the time of an insertion and of a search."""
    if pages > WARM_UP:
        measure_hashes(WARM_UP)  # compiles the loops
    generator = np.random.default_rng(SEED)
    table, before, spent = HashRows(), anonymous_bytes(), 0.0
    for first in range(0, pages, BATCH):
        values = generator.integers(0, 1 << 64, min(BATCH, pages - first), np.uint64).tolist()
        began = time.thread_time()
        for row, value in enumerate(values, first):
            table.add(value, row)
        spent += time.thread_time() - began
    grown = anonymous_bytes() - before
    values = generator.integers(0, 1 << 64, PROBED, np.uint64)
    table.rows_many(values[:1])
    began = time.thread_time()
    for first in range(0, PROBED, PROBE_BATCH):
        table.rows_many(values[first : first + PROBE_BATCH])
    probing = time.thread_time() - began
    return {
        "bytes": table.size_bytes / pages,
        "anonymous": grown / pages,
        "add ns": spent / pages * NANOSECONDS,
        "probe ns": probing / PROBED * NANOSECONDS,
        "copy": table.largest_copy,
    }


def main() -> None:
    """Measure all structures at each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 10_000_000], help="kept pages")
    arguments = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    columns = ("bytes", "anonymous", "add ns", "probe ns", "copy")
    for pages in arguments.sizes:
        table = Table(title=f"{pages:,} pages; bytes and ns a page; load {os.getloadavg()[0]:.1f}")
        for heading in ("structure", *columns):
            table.add_column(heading, justify="left" if heading == "structure" else "right")
        with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as processes:
            cells, sieve = processes.submit(measure_cells, pages).result()
            hashes = processes.submit(measure_hashes, pages).result()
        for name, figures in (("cells", cells), ("sieve", sieve), ("hash to row, each table", hashes)):
            table.add_row(name, *(f"{figures[column]:,.1f}" if column in figures else "" for column in columns))
        Console(width=100).print(table)


if __name__ == "__main__":
    main()
