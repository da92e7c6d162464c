"""Text or HTML → verdict on one core: pages a second and bytes a page, beside an earlier commit and other packages.

    python -m benchmarks.verdict [--before COMMIT] [--peers] [--pages FILE | --html [DIR]] [--count N]

Each build is a process on the same single core: the current tree with two profiles, with --before the tree of COMMIT
(in a git worktree, with the same installed libraries), and with --peers what is installed of rensa and datasketch
(MinHash of 128, 5-grams of letters, of rensa also of words, LSH at .5), PyPI simhash (4-grams, its index at k = 3), and
the same over the words of jieba.
For HTML the only peer is the usual combination: trafilatura at its defaults, tagged words of jieba.posseg, PyPI simhash
and its index. The builds take turns, a chunk of pages at a time, so that a slower machine slows all alike. The first
chunks only warm up. Times are the processor's; rates are those of the median chunk, ratios those of chunks of one turn.
A chunk is prepared, then decided in a batch, as `filter` does. Bytes a page are the growth of the process over the
chunks, without the names of pages.

Data: FILE has JSON lines of pages (`url`, `title`, `text`), DIR has *.html. Without them, generated Chinese pages of
2 KB, seed 2026, a tenth of them copies, or generated HTML of 60 KB.
"""

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

CHUNK, HTML_CHUNK, WARM_CHUNKS = 512, 20, 8  # 512 is the batch of `filter`
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

    def rate(self, chunk: int) -> float:
        """Return pages a second in the median chunk. chunk: pages of each."""
        return chunk / statistics.median(self.chunk_s)

    def page_bytes(self, chunk: int) -> float:
        """Return by how many bytes a page the process grew after the warm-up."""
        grown = self.resident[-1] - self.resident[WARM_CHUNKS - 1]
        return grown / (chunk * (len(self.resident) - WARM_CHUNKS))


def chunks_of(pages_file: Path, core: int) -> Iterator[list[dict[str, str]]]:
    """Run on one core, and yield the rows of a chunk for each line of standard input."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    with pages_file.open(encoding="utf-8") as lines:
        size = int(next(lines))
        while sys.stdin.readline():
            yield [json.loads(line) for line in islice(lines, size)]


def work(pages_file: Path, profile: str, core: int) -> None:
    """Run as the child of a tree: prepare and decide each chunk."""
    from dedup_service.core.decision.decider import Decider
    from dedup_service.core.extraction import extract, to_page
    from dedup_service.core.page import Page
    from dedup_service.core.rules.profiles import PROFILES
    from dedup_service.core.url import canonicalise
    from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

    def page_of(row: dict[str, str]) -> Page:
        if "html" in row:
            return to_page(extract(row["html"].encode("latin-1")), row["url"])
        url = row["url"]
        return Page(url=url, canonical_url=canonicalise(url), id=url, title=row["title"], text=row["text"])

    fingerprinter = build_fingerprinter(SpaceOptions())
    decider = Decider(PROFILES[profile], fingerprinter.space_id, _Names())
    done = 0
    for rows in chunks_of(pages_file, core):
        started = time.process_time()
        prepared = fingerprinter.prepare_all([page_of(row) for row in rows])
        fingerprinted = time.process_time()
        deque(decider.decide_all(list(enumerate(prepared, done + 1))), maxlen=0)
        done += len(rows)
        report(started, fingerprinted)


def work_as(peer: str, pages_file: Path, core: int) -> None:
    """Run as the child of a peer: fingerprint and look up each chunk."""
    fingerprint, decide = {**PEERS, **ENGLISH_PEERS}[peer]()
    done = 0
    for rows in chunks_of(pages_file, core):
        texts = [row["html"] if "html" in row else f"{row['title']}\n{row['text']}" for row in rows]
        started = time.process_time()
        prints = [fingerprint(text) for text in texts]
        fingerprinted = time.process_time()
        for number, made in enumerate(prints, done):
            decide(number, made)
        done += len(texts)
        report(started, fingerprinted)


def report(started: float, fingerprinted: float) -> None:
    """Tell the parent the seconds of both steps of a chunk that ends now, and the bytes of this process."""
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(json.dumps([fingerprinted - started, time.process_time() - fingerprinted, resident]), flush=True)


BLOOM_PAGES = 25_000
"""Pages that LSHBloom reserves room for."""

Peer = tuple[Callable[[str], Any], Callable[[int, Any], tuple[object, None]]]
"""What makes a fingerprint of a text, and what adds it under a number and returns first the near ones, if any."""


def _letters(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(max(1, len(text) - 4))]


def _words(text: str) -> list[str]:
    return _runs(text.split(), 5)


def _folded_words(text: str) -> list[str]:
    return _runs(re.findall(r"\w+", text.casefold()), 3)


def _runs(words: list[str], width: int) -> list[str]:
    return [" ".join(words[start : start + width]) for start in range(max(1, len(words) - width + 1))]


Features = Callable[[str], list[str]]


def _rensa(features: Features = _letters, threshold: float = 0.5, bands: int = 16) -> Peer:
    rensa = importlib.import_module("rensa")
    index = rensa.RMinHashLSH(threshold=threshold, num_perm=128, num_bands=bands)

    def fingerprint(text: str) -> Any:
        made = rensa.RMinHash(num_perm=128, seed=42)
        made.update(features(text))
        return made

    return fingerprint, lambda number, made: (index.query(made), index.insert(number, made))


def _datasketch(features: Features = _letters, threshold: float = 0.5, *, bloom: bool = False) -> Peer:
    datasketch = importlib.import_module("datasketch")
    if bloom:
        index = datasketch.MinHashLSHBloom(num_perm=128, params=_bands(threshold), n=BLOOM_PAGES, fp=1e-5)
    else:
        index = datasketch.MinHashLSH(num_perm=128, params=_bands(threshold))

    def fingerprint(text: str) -> Any:
        made = datasketch.MinHash(num_perm=128)
        made.update_batch([ngram.encode() for ngram in features(text)])
        return made

    if bloom:
        return fingerprint, lambda _, made: (index.query(made), index.insert(made))
    return fingerprint, lambda number, made: (index.query(made), index.insert(number, made))


@cache
def _bands(threshold: float) -> tuple[int, int]:
    """Return the bands and rows that datasketch chooses for a threshold, which takes it .2 s."""
    index = importlib.import_module("datasketch").MinHashLSH(threshold=threshold, num_perm=128)
    return index.b, index.r


def _simhash(features: Callable[[str], Any] = str) -> Peer:
    simhash = importlib.import_module("simhash")
    index = simhash.SimhashIndex([], k=3)
    return (
        lambda text: simhash.Simhash(features(text)),
        lambda number, made: (index.get_near_dups(made), index.add(str(number), made)),
    )


def _jieba_simhash() -> Peer:
    return _simhash(importlib.import_module("jieba").lcut)


def _usual_html() -> Peer:
    trafilatura, posseg = importlib.import_module("trafilatura"), importlib.import_module("jieba.posseg")

    def tagged_words(html: str) -> list[str]:
        found = trafilatura.bare_extraction(html.encode("latin-1"), with_metadata=True)
        text = "" if found is None else f"{found.title or ''}\n{found.text or ''}"
        return [f"{pair.word}/{pair.flag}" for pair in posseg.cut(text)]

    return _simhash(tagged_words)


PEERS: dict[str, Callable[[], Peer]] = {
    "rensa": _rensa,
    "rensa of words": partial(_rensa, _words),
    "datasketch": _datasketch,
    "simhash": _simhash,
    "jieba": _jieba_simhash,
    "trafilatura": _usual_html,
}
"""By the package that has to be installed, the first word; the last one is for HTML."""

ENGLISH_PEERS: dict[str, Callable[[], Peer]] = {
    "simhash, letter 4-grams, k = 3": _simhash,
    "simhash, word 5-grams, k = 3": partial(_simhash, _words),
    "simhash, word 3-grams, k = 3": partial(_simhash, _folded_words),
    "rensa, word 5-grams, .7": partial(_rensa, _words, 0.7),
    "rensa, word 3-grams, .5": partial(_rensa, _folded_words, 0.5, bands=32),
    "datasketch LSH, word 5-grams, .7": partial(_datasketch, _words, 0.7),
    "datasketch LSH, word 3-grams, .5": partial(_datasketch, _folded_words, 0.5),
    "datasketch LSHBloom, word 5-grams, .7": partial(_datasketch, _words, 0.7, bloom=True),
    "datasketch LSHBloom, word 3-grams, .5": partial(_datasketch, _folded_words, 0.5, bloom=True),
}
"""For benchmarks.yardsticks. 5-grams of words between spaces are the usual recipe; 3-grams of folded words are ours."""

PEER_NAMES = {"simhash": "PyPI simhash", "jieba": "jieba + simhash", "trafilatura": "trafilatura + posseg + simhash"}


class _Names:
    """Names without memory: the store of names is not part of the measurement."""

    def name(self, sequence: int) -> tuple[str, str]:
        return str(sequence), str(sequence)


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
    """Check a commit out into a temporary worktree, and build its native module, if it has one."""
    with tempfile.TemporaryDirectory(prefix="twinsieve-before-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            native = tree / "dedup_service" / "native"
            if native.exists():
                command = ["cargo", "build", "--quiet", "--release", "--locked", "--features", "python"]
                subprocess.run([*command, "--target-dir", str(native / "target")], cwd=native, check=True)
                (native / "target/release/lib_native.so").rename(native.with_name("_native.abi3.so"))
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def write_pages(path: Path, arguments: argparse.Namespace, chunk: int) -> None:
    """Write the pages as JSON lines, after the size of a chunk. HTML is in characters that are one byte each."""
    from benchmarks.service.load import html_pages, text_pages

    if arguments.pages:
        with arguments.pages.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in islice(lines, arguments.count)]
    elif arguments.html:
        files = sorted(Path(arguments.html).glob("*.html"))[: arguments.count]
        rows = [
            {"url": f"https://site.example/{file.name}", "html": file.read_bytes().decode("latin-1")} for file in files
        ]
    else:
        made = text_pages if arguments.html is None else html_pages
        rows = [json.loads(sent.value or b"") for sent in made(2026, arguments.count)]
        rows = [{**row, "html": row["html"].encode().decode("latin-1")} if "html" in row else row for row in rows]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in (chunk, *map(json.dumps, rows)))
    arguments.count = len(rows)


def table(builds: Sequence[Build], chunk: int) -> Table:
    """Return the table of figures. The ratios are against the last build."""
    shown = Table(title="→ verdict, one core", title_justify="left")
    reference = builds[-1]
    headings = ("pages/s", "fingerprint ms", "decision ms", "bytes a page", f"time against {reference.name}")
    shown.add_column("build")
    for heading in headings:
        shown.add_column(heading, justify="right")
    for one in builds:
        ratios = [a / b for a, b in zip(one.chunk_s, reference.chunk_s, strict=True)]
        shown.add_row(
            one.name,
            f"{one.rate(chunk):,.0f}",
            f"{1e3 * statistics.median(one.fingerprint_s) / chunk:.3f}",
            f"{1e3 * statistics.median(one.decide_s) / chunk:.3f}",
            f"{one.page_bytes(chunk):,.0f}",
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
    parser.add_argument("--html", nargs="?", const="", metavar="DIR", help="HTML, of DIR or generated")
    parser.add_argument("--count", type=int, default=24_000, help="maximum number of pages (default: 24,000)")
    arguments = parser.parse_args()
    chunk = CHUNK if arguments.html is None else HTML_CHUNK
    with ExitStack() as stack:
        pages_file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pages.jsonl"
        write_pages(pages_file, arguments, chunk)
        if arguments.count < (WARM_CHUNKS + 2) * chunk:
            parser.error(f"there must be at least {(WARM_CHUNKS + 2) * chunk:,} pages: the first ones only warm up")
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        trees = [("balanced", ROOT, "balanced"), ("simhash", ROOT, "simhash")]
        if arguments.peers:
            wanted = [name for name in PEERS if (name == "trafilatura") == (arguments.html is not None)]
            there = [name for name in wanted if importlib.util.find_spec(name.split()[0]) is not None]
            trees += [(PEER_NAMES.get(name, name), ROOT, f"peer {name}") for name in there]
        if arguments.before:
            trees.append((f"{arguments.before[:12]}", stack.enter_context(tree_of(arguments.before)), "balanced"))
        builds = [stack.enter_context(build_of(name, tree, pages_file, profile, core)) for name, tree, profile in trees]
        for turn in track(range(arguments.count // chunk), description="chunks", transient=True):
            for one in builds:
                one.take_turn(count=turn >= WARM_CHUNKS)
    Console().print(table(builds, chunk))


if __name__ == "__main__":
    main()
