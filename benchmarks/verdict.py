"""Text → verdict on one core: pages a second and bytes a page, beside an earlier commit and other packages.

    python -m benchmarks.verdict [--before COMMIT] [--peers] [--pages FILE] [--count N]

Each build is a process on the same single core: the current tree with two profiles, with --before the
tree of COMMIT (in a git worktree, with the same installed libraries), and with --peers what is installed of rensa and
datasketch (MinHash of 128, 5-grams, LSH at .5), PyPI simhash (4-grams, its index at k = 3), and the same over the
words of jieba. The builds take turns, a chunk of
pages at a time, so that a slower machine slows all alike. Rates are those of the median chunk, ratios those
of chunks of one turn. A chunk is fingerprinted, then decided in batches, as `filter` does. Bytes a page are
the growth of the process over the chunks, without the names of pages.

Data: FILE has JSON lines of pages (`url`, `title`, `text`); without it, generated Chinese pages of 2 KB,
seed 2026, a tenth of them copies.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

CHUNK, BATCH, WARM_CHUNKS = 512, 512, 8  # the batch is that of `filter`
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Build:
    """A process that runs one tree with one profile; its seconds and resident bytes for each chunk."""

    name: str
    process: "subprocess.Popen[str]"
    fingerprint_s: list[float] = field(default_factory=list)
    decide_s: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    def take_turn(self, *, count: bool) -> None:
        """Let the process do a chunk. count: record its times, which warm-up chunks do not."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        fingerprint_s, decide_s, resident = json.loads(self.process.stdout.readline())
        self.resident.append(resident)
        if count:
            self.fingerprint_s.append(fingerprint_s)
            self.decide_s.append(decide_s)

    @property
    def chunk_s(self) -> list[float]:
        """Seconds of each recorded chunk."""
        return [a + b for a, b in zip(self.fingerprint_s, self.decide_s, strict=True)]


def work(pages_file: Path, profile: str, core: int) -> None:
    """Run as the child: do a chunk for each line of standard input, with names that earlier trees have."""
    from dedup_service.core.page import Page
    from dedup_service.core.url import canonicalise
    from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    fingerprinter = build_fingerprinter(SpaceOptions())
    decider, batch_of = _decider(profile, fingerprinter.space_id)
    done = 0
    with pages_file.open(encoding="utf-8") as lines:
        while sys.stdin.readline():
            rows = [json.loads(line) for line, _ in zip(lines, range(CHUNK), strict=False)]
            pages = [
                Page(url=r["url"], canonical_url=canonicalise(r["url"]), id=r["url"], title=r["title"], text=r["text"])
                for r in rows
            ]
            started = time.perf_counter()
            if hasattr(fingerprinter, "prepare_all"):
                prepared = fingerprinter.prepare_all(pages)
            else:
                prepared = [fingerprinter.prepare(page) for page in pages]
            fingerprinted = time.perf_counter()
            for start in range(0, len(prepared), BATCH):
                batch = list(enumerate(prepared[start : start + BATCH], done + start + 1))
                if hasattr(decider, "decide_all"):
                    deque(decider.decide_all(batch), maxlen=0)
                    continue
                with batch_of(batch):
                    for sequence, page in batch:
                        decider.decide(sequence, page)
            decided = time.perf_counter()
            done += len(rows)
            print(json.dumps([fingerprinted - started, decided - fingerprinted, _resident()]), flush=True)


def work_as(peer: str, pages_file: Path, core: int) -> None:
    """Run as the child of a peer: do a chunk for each line of standard input."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    fingerprint, decide = PEERS[peer]()
    done = 0
    with pages_file.open(encoding="utf-8") as lines:
        while sys.stdin.readline():
            texts = [f"{row['title']}\n{row['text']}" for row in map(json.loads, islice(lines, CHUNK))]
            started = time.perf_counter()
            prints = [fingerprint(text) for text in texts]
            fingerprinted = time.perf_counter()
            for number, made in enumerate(prints, done):
                decide(number, made)
            decided = time.perf_counter()
            done += len(texts)
            print(json.dumps([fingerprinted - started, decided - fingerprinted, _resident()]), flush=True)


Peer = tuple[Callable[[str], Any], Callable[[int, Any], object]]
"""What makes a fingerprint of a text, and what looks for near ones and adds it under a number."""


def _rensa() -> Peer:
    rensa = importlib.import_module("rensa")
    index = rensa.RMinHashLSH(threshold=0.5, num_perm=128, num_bands=16)

    def fingerprint(text: str) -> Any:
        made = rensa.RMinHash(num_perm=128, seed=42)
        made.update([text[start : start + 5] for start in range(max(1, len(text) - 4))])
        return made

    return fingerprint, lambda number, made: (index.query(made), index.insert(number, made))


def _datasketch() -> Peer:
    datasketch = importlib.import_module("datasketch")
    index = datasketch.MinHashLSH(threshold=0.5, num_perm=128)

    def fingerprint(text: str) -> Any:
        made = datasketch.MinHash(num_perm=128)
        made.update_batch([text[start : start + 5].encode() for start in range(max(1, len(text) - 4))])
        return made

    return fingerprint, lambda number, made: (index.query(made), index.insert(number, made))


def _simhash(features: Callable[[str], Any] = str) -> Peer:
    simhash = importlib.import_module("simhash")
    index = simhash.SimhashIndex([], k=3)
    return (
        lambda text: simhash.Simhash(features(text)),
        lambda number, made: (index.get_near_dups(made), index.add(str(number), made)),
    )


def _jieba_simhash() -> Peer:
    return _simhash(importlib.import_module("jieba").lcut)


PEERS: dict[str, Callable[[], Peer]] = {
    "rensa": _rensa,
    "datasketch": _datasketch,
    "simhash": _simhash,
    "jieba": _jieba_simhash,
}
"""By the package that has to be installed."""

PEER_NAMES = {"simhash": "PyPI simhash", "jieba": "jieba + simhash"}


class _Names:
    """Names without memory: the store of names is not part of the measurement."""

    def name(self, sequence: int) -> tuple[str, str]:
        return str(sequence), str(sequence)


def _decider(profile: str, space_id: str) -> tuple[Any, Any]:
    """Return the decider of the tree that this runs in, and its method for batches.

    The modules were moved, and `together` became `batch`, after the first trees that can be compared with.
    """
    if importlib.util.find_spec("dedup_service.core.rules") is not None:
        from dedup_service.core.decision.decider import Decider
        from dedup_service.core.rules.profiles import PROFILES

        decider = Decider(PROFILES[profile], space_id, _Names())
        return decider, decider.batch
    earlier = importlib.import_module("dedup_service.core.decision")
    rule = importlib.import_module("dedup_service.core.profiles").PROFILES[profile]
    decider = earlier.Decider(rule, space_id, _Names())
    return decider, decider.together


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def build_of(name: str, tree: Path, pages_file: Path, profile: str, core: int) -> Iterator[Build]:
    """Start a child that runs the code of `tree`; profile: "peer " and a name of PEERS runs that instead."""
    command = [sys.executable, str(Path(__file__)), "--child", str(pages_file), profile, str(core)]
    paths = (str(tree), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen(
        command, env=environment, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Build(name, process)
        finally:
            process.kill()


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary worktree."""
    with tempfile.TemporaryDirectory(prefix="twinsieve-before-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def write_pages(path: Path, count: int) -> None:
    """Write generated pages as JSON lines."""
    from benchmarks.service.load import text_pages

    with path.open("w", encoding="utf-8") as file:
        for sent in text_pages(2026, count):
            assert sent.value is not None  # only rejected records have none
            file.write(sent.value.decode() + "\n")


def table(builds: Sequence[Build]) -> Table:
    """Return the table of figures. The ratios are against the last build."""
    shown = Table(title="text → verdict, one core", title_justify="left")
    reference = builds[-1]
    headings = ("pages/s", "fingerprint ms", "decision ms", "bytes a page", f"time against {reference.name}")
    shown.add_column("build")
    for heading in headings:
        shown.add_column(heading, justify="right")
    for one in builds:
        ratios = [a / b for a, b in zip(one.chunk_s, reference.chunk_s, strict=True)]
        grown = (one.resident[-1] - one.resident[WARM_CHUNKS - 1]) / (CHUNK * (len(one.resident) - WARM_CHUNKS))
        shown.add_row(
            one.name,
            f"{CHUNK / statistics.median(one.chunk_s):,.0f}",
            f"{1e3 * statistics.median(one.fingerprint_s) / CHUNK:.3f}",
            f"{1e3 * statistics.median(one.decide_s) / CHUNK:.3f}",
            f"{grown:,.0f}",
            f"{statistics.median(ratios):.2f}",
        )
    return shown


def main() -> None:
    """Run the builds and print the table."""
    if sys.argv[1:2] == ["--child"]:
        pages_file, name, core = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
        if name.startswith("peer "):
            work_as(name.removeprefix("peer "), pages_file, core)
        else:
            work(pages_file, name, core)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="COMMIT", help="also run the tree of this commit")
    parser.add_argument("--peers", action="store_true", help="also run other packages, those that are installed")
    parser.add_argument("--pages", type=Path, help="JSON lines of pages")
    parser.add_argument("--count", type=int, default=24_000, help="maximum number of pages (default: 24,000)")
    arguments = parser.parse_args()
    if arguments.count < (WARM_CHUNKS + 2) * CHUNK:
        parser.error(f"--count must be at least {(WARM_CHUNKS + 2) * CHUNK:,}: the first pages only warm up")
    with ExitStack() as stack:
        pages_file = arguments.pages
        if pages_file is None:
            pages_file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pages.jsonl"
            write_pages(pages_file, arguments.count)
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        trees = [("balanced", ROOT, "balanced"), ("simhash", ROOT, "simhash")]
        if arguments.peers:
            there = [name for name in PEERS if importlib.util.find_spec(name) is not None]
            trees += [(PEER_NAMES.get(name, name), ROOT, f"peer {name}") for name in there]
        if arguments.before:
            trees.append((f"{arguments.before[:12]}", stack.enter_context(tree_of(arguments.before)), "balanced"))
        builds = [stack.enter_context(build_of(name, tree, pages_file, profile, core)) for name, tree, profile in trees]
        for turn in track(range(arguments.count // CHUNK), description="chunks", transient=True):
            for one in builds:
                one.take_turn(count=turn >= WARM_CHUNKS)
    Console().print(table(builds))


if __name__ == "__main__":
    main()
