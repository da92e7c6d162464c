"""Text → verdict on one core: pages a second, bytes a page, and against an earlier commit in the same run.

    python -m benchmarks.verdict [--before COMMIT] [--pages FILE] [--count N]

Each way is a process of its own on the same one core: the tree as it is, by profile, and with --before the tree of
COMMIT beside it (in a git worktree, with the same installed libraries). The ways take turns, a chunk of pages at a
time, so a machine that slows down slows all alike; rates are of the median chunk, ratios of chunks that followed each
other. A chunk is fingerprinted, then decided as `filter` does it, announced in batches. Bytes are what the process has
grown by over the chunks, names of pages not counted.

Data: FILE holds JSON lines of pages (`url`, `title`, `text`); without it, Chinese pages of 2 KB of our own writing,
a tenth of them copies.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

CHUNK, BATCH, WARM_CHUNKS = 500, 128, 8
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Build:
    """A process that answers to each chunk with its seconds and its resident bytes."""

    name: str
    process: "subprocess.Popen[str]"
    fingerprint_s: list[float] = field(default_factory=list)
    decide_s: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    def take_turn(self, *, count: bool) -> None:
        """Let it do a chunk."""
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
        """Seconds of each counted chunk."""
        return [a + b for a, b in zip(self.fingerprint_s, self.decide_s, strict=True)]


def work(pages_file: Path, profile: str, core: int) -> None:
    """The child: a chunk for each line that it is told; only names that an earlier tree has, too."""
    from dedup_service.core.decision.decider import Decider
    from dedup_service.core.page import Page
    from dedup_service.core.url import canonicalise
    from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    fingerprinter = build_fingerprinter(SpaceOptions())
    decider, done = Decider(_rule(profile), fingerprinter.space_id, _Names()), 0
    with pages_file.open(encoding="utf-8") as lines:
        while sys.stdin.readline():
            rows = [json.loads(line) for line, _ in zip(lines, range(CHUNK), strict=False)]
            pages = [
                Page(url=r["url"], canonical_url=canonicalise(r["url"]), id=r["url"], title=r["title"], text=r["text"])
                for r in rows
            ]
            begun = time.perf_counter()
            prepared = [fingerprinter.prepare(page) for page in pages]
            middle = time.perf_counter()
            for start in range(0, len(prepared), BATCH):
                batch = list(enumerate(prepared[start : start + BATCH], done + start + 1))
                with decider.batch(batch):
                    for sequence, page in batch:
                        decider.decide(sequence, page)
            ended = time.perf_counter()
            done += len(rows)
            print(json.dumps([middle - begun, ended - middle, _resident()]), flush=True)


class _Names:
    """Names of nobody: what a journal remembers is not measured here."""

    def name(self, sequence: int) -> tuple[str, str]:
        return str(sequence), str(sequence)


def _rule(profile: str):  # type: ignore[no-untyped-def] # of whichever tree this runs in
    try:
        from dedup_service.core.rules.profiles import PROFILES
    except ImportError:
        from dedup_service.core.rules.rule import rule_for

        return rule_for("both")
    return PROFILES[profile]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def way(name: str, tree: Path, pages_file: Path, profile: str, core: int) -> Iterator[Build]:
    """Run a child over `tree`."""
    command = [sys.executable, str(Path(__file__)), "--child", str(pages_file), profile, str(core)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with subprocess.Popen(
        command, env=environment, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Build(name, process)
        finally:
            process.kill()


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Check a commit out beside this tree."""
    with tempfile.TemporaryDirectory(prefix="twinsieve-before-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def write_pages(path: Path, count: int) -> None:
    """Write our own pages."""
    from benchmarks.service.load import text_pages

    with path.open("w", encoding="utf-8") as file:
        for sent in text_pages(2026, count):
            file.write(sent.value.decode() + "\n")


def table(ways: Sequence[Build]) -> Table:
    """What came out: the last of the ways is what the ratios are against."""
    shown = Table(title="text → verdict, one core", title_justify="left")
    for heading in ("way", "pages/s", "fingerprint ms", "decision ms", "bytes a page", f"time against {ways[-1].name}"):
        shown.add_column(heading, justify="left" if heading == "way" else "right")
    for one in ways:
        ratios = [a / b for a, b in zip(one.chunk_s, ways[-1].chunk_s, strict=True)]
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
    """Run the ways and print the table."""
    if sys.argv[1:2] == ["--child"]:
        work(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="COMMIT", help="also run the tree of this commit")
    parser.add_argument("--pages", type=Path, help="JSON lines of pages")
    parser.add_argument("--count", type=int, default=24_000, help="pages to take, all that FILE has at most")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        pages_file = arguments.pages
        if pages_file is None:
            pages_file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pages.jsonl"
            write_pages(pages_file, arguments.count)
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        places = [("balanced", ROOT, "balanced"), ("simhash", ROOT, "simhash")]
        if arguments.before:
            places.append((f"{arguments.before[:12]}", stack.enter_context(tree_of(arguments.before)), "simhash"))
        ways = [stack.enter_context(way(name, tree, pages_file, profile, core)) for name, tree, profile in places]
        for turn in track(range(arguments.count // CHUNK), description="chunks", transient=True):
            for one in ways:
                one.take_turn(count=turn >= WARM_CHUNKS)
    Console().print(table(ways))


if __name__ == "__main__":
    main()
