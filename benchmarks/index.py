"""Block index: query and insert, memory, pauses and recall, beside faiss, PyPI simhash and usearch in one run.

Data: uniform fingerprints from numpy's PCG64, seed 2026. Each index is filled in batches of 4,096; then batches of 512
fingerprints are searched and inserted, as a filter does, for --seconds, but not beyond half as many again. One query in
ten is a stored fingerprint with three bits flipped; recall is the share of these that is found. Speed is fingerprints
per second of processor time in one thread. p99 and the longest pause are wall-clock times of a batch of 512 and, while
filling, of 4,096. Bytes are what the index counts, or the growth of the process.

--skew puts a fifth of the fingerprints into one 16-bit block, and into one half, and compares with an even load.
--threshold measures one hot bucket of the seed layout of several sizes, split and whole.

    python -m benchmarks.index [--sizes 100000 1000000] [--largest N] [--radius 3 7] [--peer-sizes 100000]
                               [--skew 500000] [--threshold] [--picture docs/images/index-peers]
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.index_contenders import PEERS, RADIUS, ComparedIndex, Ours, installed
from dedup_service.core.index import BlockIndex

SEED = 2026
FILL, BATCH, COPIES = 4096, 512, 10
HOT_MASK, HOT_BLOCK = np.uint64(0xFFFF0000), np.uint64(0x5AA50000)
HOT_HALF = np.uint64(0xFFFF_FFFF)

Fingerprints = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """One contender at one size. rate: query + insert a second; times in ms; size_bytes: of one fingerprint."""

    name: str
    size: int
    rate: float
    p99_ms: float
    pause_ms: float
    size_bytes: float
    recall: float


def uniform(count: int, seed: int) -> Fingerprints:
    """Return independent fingerprints: uint64[count]."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, dtype=np.uint64)


def hot(count: int, seed: int, mask: np.uint64 = HOT_MASK) -> Fingerprints:
    """Return fingerprints that agree in the bits of the mask: uint64[count]."""
    return (uniform(count, seed) & ~mask) | (HOT_BLOCK & mask)


def flipped(fingerprints: Fingerprints, bits: int, seed: int) -> Fingerprints:
    """Return fingerprints with `bits` bits flipped (fewer where the same bit is drawn twice)."""
    generator = np.random.default_rng(seed)
    mask = np.zeros(len(fingerprints), np.uint64)
    for _ in range(bits):
        mask |= np.uint64(1) << generator.integers(0, 64, len(fingerprints), dtype=np.uint64)
    return fingerprints ^ mask


def resident_bytes() -> int:
    """Return the memory of this process, from the kernel."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, make: Callable[[], ComparedIndex], stored: Fingerprints, seconds: float) -> IndexFigures:
    """Fill an index, then search and insert batches for so many seconds, or until it is half as large again."""
    before, index, pause = resident_bytes(), make(), 0.0
    for first in range(0, len(stored), FILL):
        begin = time.perf_counter()
        index.add(first, stored[first : first + FILL])
        pause = max(pause, time.perf_counter() - begin)
    size_bytes = float(index.size_bytes() or resident_bytes() - before)
    if size_bytes < 16 * len(stored):  # fewer than a fingerprint and a number: it used memory that was there already
        size_bytes = float("nan")
    walls, spent, found, planted, number = [], 0.0, 0, 0, len(stored)
    while spent < seconds and number < len(stored) * 3 // 2:
        generator = np.random.default_rng([SEED, number])
        batch = generator.integers(0, 1 << 64, BATCH, dtype=np.uint64)
        sources = generator.integers(0, len(stored), len(batch[::COPIES]))
        batch[::COPIES] = flipped(stored[sources], RADIUS, number)
        begin, begin_wall = time.process_time(), time.perf_counter()
        queries, numbers = index.search(batch)
        index.add(number, batch)
        spent += time.process_time() - begin
        walls.append(time.perf_counter() - begin_wall)
        number += len(batch)
        answers = set(zip(queries.tolist(), numbers.tolist(), strict=True))
        found += len(answers & set(zip(range(0, BATCH, COPIES), sources.tolist(), strict=True)))
        planted += len(sources)
    rate = (number - len(stored)) / spent
    p99_ms = float(np.percentile(walls, 99)) * 1e3
    return IndexFigures(name, len(stored), rate, p99_ms, pause * 1e3, size_bytes / len(stored), found / planted)


def warm_up() -> None:
    """Load or compile the kernels."""
    for radius, layout in ((3, "compact"), (3, "seed"), (7, "seed")):
        index = BlockIndex(radius, layout=layout, min_split=2)  # type: ignore[arg-type]
        index.insert_many(np.arange(5000), hot(5000, SEED))
        index.probe_many(hot(50, SEED))


def chosen(
    sizes: list[int], peer_sizes: list[int], radii: list[int]
) -> dict[str, tuple[Callable[[], ComparedIndex], list[int]]]:
    """Return the contenders, each with the sizes at which it is measured."""
    contenders: dict[str, tuple[Callable[[], ComparedIndex], list[int]]] = {}
    if RADIUS in radii:
        contenders["twinsieve, k = 3"] = (Ours, sizes)
        if peer_sizes:
            contenders["twinsieve, k = 3, seed layout"] = (lambda: Ours(3, "seed"), sizes)
        for name, (make, most) in PEERS.items():
            if peer_sizes and installed(name, make):
                contenders[name] = (make, [size for size in peer_sizes if size <= most])
    if 7 in radii:
        contenders["twinsieve, k = 7"] = (lambda: Ours(7), [size for size in sizes if size <= 10_000_000])
    return contenders


def compared(sizes: list[int], peer_sizes: list[int], radii: list[int], seconds: float) -> list[IndexFigures]:
    """Measure and print every contender at every size."""
    contenders = chosen(sizes, peer_sizes, radii)
    print("| index | fingerprints | query + insert/s | p99 of 512 | longest fill of 4,096 | bytes | recall |")
    print("|---|---|---|---|---|---|---|")
    results = []
    for size in sorted({*sizes, *peer_sizes}):
        stored = uniform(size, SEED)
        for name, (make, wanted) in contenders.items():
            if size in wanted:
                one = measure(name, make, stored, seconds)
                results.append(one)
                print(
                    f"| {one.name} | {one.size:,} | {one.rate:,.0f} | {one.p99_ms:.2f} ms | {one.pause_ms:.1f} ms "
                    f"| {one.size_bytes:.0f} | {one.recall:.3f} |",
                    flush=True,
                )
    ours = {one.size: one.rate for one in results if one.name == "twinsieve, k = 3"}
    for one in results:
        if not one.name.startswith("twinsieve") and one.size in ours:
            print(f"ratio at {one.size:,}: {ours[one.size] / one.rate:,.0f} × {one.name}")
    return results


def skew(size: int, radius: int) -> None:
    """Print probes a second when a fifth of the fingerprints share a block or a half, and on an even load."""
    figures = {}
    for name, mask in (("even", np.uint64(0)), ("16 bits", HOT_MASK), ("32 bits", HOT_HALF)):
        for split in (True, False) if mask else (True,):
            stored, probes = uniform(size, SEED), uniform(20_000, SEED + 1)
            stored[: size // 5] = hot(size // 5, SEED + 3, mask)
            probes[::5] = hot(len(probes[::5]), SEED + 4, mask)
            index = BlockIndex(radius) if split else BlockIndex(radius, min_split=None)
            index.insert_many(np.arange(size), stored)
            probes = probes if split else probes[:1000]
            begin = time.process_time()
            index.probe_many(probes)
            rate = len(probes) / (time.process_time() - begin)
            work = index.work()
            size_bytes = index.statistics().bytes / size
            figures[name if split else f"{name}, one level"] = (
                f"{rate:,.0f}/s, {work.entries / work.probes:,.0f} compared, {size_bytes:.0f} bytes"
            )
    print(f"skew k={radius} {size:,}, a fifth of the fingerprints share:")
    for name, text in figures.items():
        print(f"  {name}: {text}")


def threshold(radius: int) -> None:
    """Print the time of a probe into one hot bucket of the seed layout, split and whole, by its size."""
    background, probes = uniform(200_000, SEED), hot(5000, SEED + 4)
    for size in (256, 1024, 4096, 16_384, 65_536):
        times, room = [], []
        for smallest_split in (size - 1, None):
            index = BlockIndex(radius, layout="seed", min_split=smallest_split)
            index.insert_many(np.arange(len(background)), background)
            index.insert_many(np.arange(size) + len(background), hot(size, SEED + 3))
            begin = time.process_time()
            index.probe_many(probes)
            times.append(1e6 * (time.process_time() - begin) / len(probes))
            room.append(index.statistics().bytes)
        print(
            f"threshold k={radius} {size:>9,}: split {times[0]:.2f} µs, whole {times[1]:.2f} µs a probe; "
            f"{(room[0] - room[1]) / size:.0f} bytes an entry more"
        )


def picture(results: list[IndexFigures], path: Path) -> None:
    """Draw speed and bytes by size, as PNG and SVG. path: without suffix."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "twinsieve", "font.size": 9, "axes.grid": True, "grid.color": "#e6e6e6"})
    from matplotlib import pyplot as plt

    figure, (speed, memory) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for name in dict.fromkeys(one.name for one in results):
        some = [one for one in results if one.name == name]
        look = {"marker": "o", "linewidth": 2.2 if name == "twinsieve, k = 3" else 1.0}
        speed.loglog([one.size for one in some], [one.rate for one in some], label=name, **look)
        memory.loglog([one.size for one in some], [one.size_bytes for one in some], **look)
    speed.set(xlabel="fingerprints stored", ylabel="query + insert a second, one thread")
    memory.set(xlabel="fingerprints stored", ylabel="bytes a fingerprint")
    figure.legend(*speed.get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000], help="entries of the block index")
    parser.add_argument("--largest", type=int, default=0, help="one more size of ours, k = 3 alone")
    parser.add_argument(
        "--peer-sizes",
        type=int,
        nargs="*",
        default=[100_000],
        help="entries of the peers; none: our default layout alone",
    )
    parser.add_argument("--radius", type=int, nargs="*", default=[3, 7], help="radii of the block index")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time for each contender")
    parser.add_argument("--skew", type=int, default=500_000, help="entries of the skewed load; 0 skips it")
    parser.add_argument("--threshold", action="store_true", help="measure where a second level pays, and nothing else")
    parser.add_argument("--picture", type=Path, help="write a picture to this path, without suffix")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    warm_up()
    if options.threshold:
        for radius in options.radius:
            threshold(radius)
        return
    results = compared(options.sizes, options.peer_sizes, options.radius, options.seconds)
    if options.largest:
        results += compared([options.largest], [], [RADIUS], options.seconds)
    if options.skew:
        for radius in options.radius:
            skew(options.skew, radius)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    if options.picture:
        picture(results, options.picture)


if __name__ == "__main__":
    main()
