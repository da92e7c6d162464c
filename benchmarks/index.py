"""Block index: probes and inserts a second, compared with the index of PyPI simhash in one run.

Data: uniform fingerprints from numpy's PCG64, seed 2026; one probe in ten is a stored fingerprint with up to
`radius` bits flipped. "one by one" is a Python loop of probe and insert, as in the filter; "bulk" is
insert_many and probe_many. simhash gets the same fingerprints, already computed, with k = radius.

--skew puts a fifth of the fingerprints into one hot block and compares with and without the second level.
--threshold measures one hot bucket of several sizes, split and whole, to find the size at which splitting
pays.

    python -m benchmarks.index [--sizes 100000 1000000] [--radius 3 7] [--peer-sizes 100000] [--skew 500000]
                               [--threshold]
"""

import argparse
import logging
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dedup_service.core.index import BlockIndex

SEED = 2026
HOT_MASK, HOT_BLOCK = np.uint64(0xFFFF0000), np.uint64(0x5AA50000)

Fingerprints = npt.NDArray[np.uint64]


def uniform(count: int, seed: int) -> Fingerprints:
    """Return independent fingerprints: uint64[count]."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, dtype=np.uint64)


def hot(count: int, seed: int) -> Fingerprints:
    """Return fingerprints that agree in their second block: uint64[count]."""
    return (uniform(count, seed) & ~HOT_MASK) | HOT_BLOCK


def near(stored: Fingerprints, count: int, radius: int) -> Fingerprints:
    """Return probes: uint64[count], one in ten a stored fingerprint with up to `radius` bits flipped."""
    probes = uniform(count, SEED + 1)
    generator = np.random.default_rng(SEED + 2)
    for at in range(0, count, 10):
        flips = generator.choice(64, generator.integers(0, radius + 1), replace=False)
        probes[at] = stored[generator.integers(len(stored))] ^ np.uint64(sum(1 << int(bit) for bit in flips))
    return probes


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call, which other work affects less than wall-clock time."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def probe_rate(index: BlockIndex, probes: Fingerprints) -> float:
    """Return bulk probes a second, the best of three."""
    return len(probes) / min(seconds(lambda: index.probe_many(probes)) for _ in range(3))


def one_by_one(index: BlockIndex, probes: list[int], first_sequence: int) -> None:
    """Probe, then insert, as the filter does for every page."""
    for number, fingerprint in enumerate(probes):
        index.probe(fingerprint)
        index.insert(first_sequence + number, fingerprint)


def warm_up(radius: int) -> None:
    """Load or compile the kernels."""
    index = BlockIndex(radius, min_split=2)
    index.insert_many(np.arange(5000), hot(5000, SEED))
    one_by_one(index, [1, 2], 5000)
    index.remove(5000, 1)


def block_index(size: int, radius: int) -> tuple[float, float]:
    """Print the block index's figures at one size; return (seconds to build, probe + insert a second)."""
    stored = uniform(size, SEED)
    probes = near(stored, 20_000, radius)
    index = BlockIndex(radius)
    build = seconds(lambda: index.insert_many(np.arange(size), stored))
    many = probe_rate(index, probes)
    work = index.work()
    single = seconds(lambda: one_by_one(index, probes.tolist(), size))
    rate = len(probes) / single
    print(
        f"twinsieve k={radius} {size:>9,}: bulk insert {size / build:>11,.0f}/s  bulk probe "
        f"{many:>11,.0f}/s  probe+insert one by one {rate:>9,.0f}/s  "
        f"{work.entries / work.probes:,.0f} compared in {work.buckets / work.probes:.0f} buckets  "
        f"{index.statistics().bytes / len(index):.0f} bytes an entry"
    )
    return build, rate


def simhash(size: int, radius: int) -> tuple[float, float]:
    """Print PyPI simhash's figures at one size; return (seconds to build, probe + insert a second)."""
    from simhash import Simhash, SimhashIndex  # type: ignore[import-untyped]

    logging.getLogger("simhash").setLevel(logging.ERROR)
    stored = uniform(size, SEED)
    entries = [(str(number), Simhash(value)) for number, value in enumerate(stored.tolist())]
    probes = [Simhash(value) for value in near(stored, 2000, radius).tolist()]
    index = SimhashIndex([], k=radius)

    def build() -> None:
        for entry in entries:
            index.add(*entry)

    def probe_and_insert() -> None:
        for number, value in enumerate(probes):
            index.get_near_dups(value)
            index.add(f"new{number}", value)

    built = seconds(build)
    rate = len(probes) / seconds(probe_and_insert)
    print(f"simhash   k={radius} {size:>9,}: insert {size / built:>16,.0f}/s  probe+insert one by one {rate:>34,.0f}/s")
    return built, rate


def skew(size: int, radius: int) -> None:
    """Print probes a second when a fifth of the fingerprints share a block, whole and split."""
    stored = uniform(size, SEED)
    stored[: size // 5] = hot(size // 5, SEED + 3)
    probes = near(stored, 2000, radius)
    probes[::5] = hot(len(probes[::5]), SEED + 4)
    figures = {}
    for name, smallest_split in (("even", None), ("whole", None), ("split", 4096)):
        index = BlockIndex(radius, min_split=smallest_split)
        index.insert_many(np.arange(size), uniform(size, SEED) if name == "even" else stored)
        chosen = uniform(2000, SEED + 1) if name == "even" else probes
        figures[name] = probe_rate(index, chosen), index.statistics().bytes / size
    print(f"skew      k={radius} {size:>9,}: 20% in one hot block, bulk probes a second (bytes an entry):")
    print("          " + "  ".join(f"{name} {rate:,.0f} ({room:.0f})" for name, (rate, room) in figures.items()))
    print(f"          second level: {figures['split'][0] / figures['whole'][0]:.0f} x")


def threshold(radius: int) -> None:
    """Print the time of a probe into one hot bucket, split and whole, by its size."""
    background, probes = uniform(200_000, SEED), hot(5000, SEED + 4)
    for size in (256, 1024, 4096, 16_384, 65_536):
        times, room = [], []
        for smallest_split in (size - 1, None):
            index = BlockIndex(radius, min_split=smallest_split)
            index.insert_many(np.arange(len(background)), background)
            index.insert_many(np.arange(size) + len(background), hot(size, SEED + 3))
            times.append(1e6 / probe_rate(index, probes))
            room.append(index.statistics().bytes)
        print(
            f"threshold k={radius} {size:>9,}: split {times[0]:.2f} µs, whole {times[1]:.2f} µs a probe; "
            f"{(room[0] - room[1]) / size:.0f} bytes an entry more"
        )


def main() -> None:
    """Read the arguments and print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000], help="entries of the block index")
    parser.add_argument("--peer-sizes", type=int, nargs="*", default=[100_000], help="entries of both indexes")
    parser.add_argument(
        "--radius", type=int, nargs="*", default=[3, 7], help="radii of the block index; simhash gets the first"
    )
    parser.add_argument("--skew", type=int, default=500_000, help="entries of the skewed load; 0 skips it")
    parser.add_argument("--threshold", action="store_true", help="measure at which bucket size a second level pays")
    options = parser.parse_args()
    for radius in options.radius:
        warm_up(radius)
        if options.threshold:
            threshold(radius)
            continue
        built = {size: block_index(size, radius) for size in sorted({*options.sizes, *options.peer_sizes})}
        for size in options.peer_sizes if radius == options.radius[0] else []:
            build, rate = simhash(size, radius)
            inserts, probes = build / built[size][0], built[size][1] / rate
            print(f"ratio     k={radius} {size:>9,}: insert {inserts:.0f} x, probe+insert {probes:.0f} x")
        if options.skew:
            skew(options.skew, radius)


if __name__ == "__main__":
    main()
