"""Sessions in the documents, run as a reader types them.

A block with a title is a file that the reader writes. In a block of `console`, each line that begins with `$ ` is a
command, and the lines under it are what a terminal shows then: `…` stands for any text in a line, and alone for any
lines. All other blocks are for reading only.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.crawler.running import ROOT, environment
from tests.hangs import HANG_S

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*(?:(?<=\\)\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def section(page: str, heading: str) -> str:
    """Return the section of a page that begins with the line `heading`, with what is below it."""
    text = (ROOT / page).read_text("utf-8")
    level = heading.partition(" ")[0]
    return text.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]


def run(text: str, folder: Path, *, instead: Mapping[str, str] | None = None) -> None:
    """Run the blocks of `text` in a folder, and compare what they print. instead: text → what it is in this run."""
    for old, new in (instead or {}).items():
        assert old in text
        text = text.replace(old, new)
    blocks = _BLOCK.findall(text)
    assert any(language == "console" for language, *_ in blocks)
    for language, title, block in blocks:
        if title:
            (folder / title).write_text(block, "utf-8")
        elif language == "console":
            for command, expected in _COMMAND.findall(block):
                printed = _printed(command, folder)
                assert re.fullmatch(_pattern(expected), printed), f"$ {command}\n{printed}\nis not\n{expected}"


def _printed(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**environment(), "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def _pattern(expected: str) -> str:
    def lines() -> Iterator[str]:
        for line in expected.splitlines():
            yield "(?:.*\n)*?" if line == "…" else re.escape(line.rstrip()).replace("…", ".*") + "\n"

    return "".join(lines())
