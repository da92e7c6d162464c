"""Sessions in the documents, run as a reader types them.

A block with a title is a file that the reader writes. In a block of `console`, each line that begins with `$ ` is a
command, and the lines under it are what a terminal shows then: `…` stands for any text in a line, and alone for any
lines. Blanks at both ends of a line do not count: programs of systems differ there. All other blocks are for reading.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.crawler.running import ROOT, environment
from tests.hangs import HANG_S

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*(?:(?<=\\)\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)

_MARK = "--- the next command ---"


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text("utf-8")


def section(name: str, heading: str) -> str:
    """Return the section of a page that begins with the line `heading`, with what is below it."""
    level = heading.partition(" ")[0]
    return page(name).partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]


def run(text: str, folder: Path, *, instead: Mapping[str, str] | None = None) -> None:
    """Run the blocks of `text` in a folder, in one shell, and compare what each command prints.

    instead: text → what it is in this run.
    """
    for old, new in (instead or {}).items():
        assert old in text
        text = text.replace(old, new)
    typed: list[tuple[str, str]] = []
    for language, title, block in _BLOCK.findall(text):
        if title:
            (folder / title).write_text(block, "utf-8")
        elif language == "console":
            typed += _COMMAND.findall(block)
    assert typed
    for (command, expected), printed in zip(typed, _printed([command for command, _ in typed], folder), strict=True):
        assert re.fullmatch(_pattern(expected), printed), f"$ {command}\n{printed}\nis not\n{expected}"


def _printed(commands: Sequence[str], folder: Path) -> list[str]:
    """Return what each command prints. Jobs in the background end with the last one."""
    script = "".join(f"{command}\nprintf '\\n{_MARK}\\n'\n" for command in commands)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "-c", f"trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n{script}"],
        cwd=folder,
        env={**environment(), "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=HANG_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    pieces = printed.split(f"\n{_MARK}\n")[:-1]
    return ["".join(f"{line.strip()}\n" for line in piece.splitlines()) for piece in pieces]


def _pattern(expected: str) -> str:
    def lines() -> Iterator[str]:
        for line in expected.splitlines():
            yield "(?:.*\n)*?" if line == "…" else re.escape(line.strip()).replace("…", ".*") + "\n"

    return "".join(lines())
