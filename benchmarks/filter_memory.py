"""Memory a kept page of `twinsieve filter`, read from outside.

Generated texts of 400 letters (tests.crawls.texts), nearly all of them kept, go to a `filter` with a state
folder. At each of the numbers of pages it waits until all verdicts are written, and reads RssAnon and RssShmem of the
process, its workers not counted. Then it is started again with what it kept, and read after one page more. `grown` is
what it has beyond the first page of an empty state.

    python -m benchmarks.filter_memory [--pages 1000000] [--folder DIR]
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.crawls.texts import Writer

SEED = 7
LETTERS = 400
FED = 2000
"""Pages that are written to the process at once."""

SETTLED_S = 2.0
MB = 1 << 20


def lines() -> Iterator[bytes]:
    """Yield pages for ever."""
    writer = Writer(random.Random(SEED))
    number = 0
    while True:
        page = {
            "id": f"page-{number:08d}",
            "url": f"https://site{number % 1000:06}.example/{2000 + number % 27}/{number:09}",
            "title": writer.title(),
            "text": writer.text(LETTERS),
        }
        yield json.dumps(page, ensure_ascii=False).encode() + b"\n"
        number += 1


class RunningFilter:
    """A `twinsieve filter` on the state in `folder`, which reads from a pipe."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "verdicts.jsonl"
        self._output.unlink(missing_ok=True)
        self._read = self._answered = self._given = 0
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", "-", "--quiet"]
        files = ["--state", str(folder / "state"), "--output", str(self._output)]
        self._process = subprocess.Popen([*command, *files], stdin=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def decide(self, pages: Iterator[bytes], count: int) -> None:
        """Give it so many pages, and wait for their verdicts."""
        assert self._process.stdin is not None
        for start in range(0, count, FED):
            self._process.stdin.write(b"".join(next(pages) for _ in range(min(FED, count - start))))
            self._process.stdin.flush()
        self._given += count
        while self._answered < self._given:
            if self._process.poll() is not None:
                raise RuntimeError(f"filter ended with {self._process.returncode}")
            time.sleep(0.05)
            self._count_verdicts()

    def memory_bytes(self) -> int:
        """Return its anonymous and shared memory."""
        time.sleep(SETTLED_S)
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return sum(1024 * int(size) for size in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", status))

    def processor_s(self) -> float:
        """Return the seconds of processor that it took."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _count_verdicts(self) -> None:
        if self._output.exists():
            with self._output.open("rb") as file:
                file.seek(self._read)
                content = file.read()
            self._read += len(content)
            self._answered += content.count(b"\n")


def report(what: str, pages: int, running: RunningFilter, empty_bytes: int) -> int:
    """Print the memory of a process, and return its bytes."""
    memory = running.memory_bytes()
    grown = memory - empty_bytes if empty_bytes else 0
    print(
        f"{what:8} {pages:>9,} pages: {memory / MB:,.1f} MB, grown by {grown / MB:,.1f} MB, {grown / pages:,.1f} bytes "
        f"a page; {running.processor_s():.1f} s of processor; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return memory


def main() -> None:
    """Fill a state, and start it again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    pages, done, empty_bytes = lines(), 0, 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        with RunningFilter(folder) as running:
            for count in (1, 300, *(arguments.pages * part // 10 for part in (1, 2, 5, 10))):
                running.decide(pages, count - done)
                done = count
                memory = report("filling", count, running, empty_bytes)
                empty_bytes = empty_bytes or memory
        with RunningFilter(folder) as running:
            running.decide(pages, 1)
            report("started", done + 1, running, empty_bytes)


if __name__ == "__main__":
    main()
