"""Make docs/images/demo.svg from a real run of `twinsieve demo`.

Run: .venv/bin/python docs/images/picture.py

The picture is what the command printed on a terminal 150 columns wide; the middle of the long table is left out,
and the gap is shown.
"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 150
HEAD, TAIL = 44, 9
TARGET = Path(__file__).with_name("demo.svg")


def terminal_output() -> list[str]:
    """The lines that the demo prints, colours included."""
    surroundings = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "demo"]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603


def excerpt(lines: list[str]) -> list[str]:
    """The beginning and the end."""
    if len(lines) <= HEAD + TAIL:
        return lines
    left_out = len(lines) - HEAD - TAIL
    return [*lines[:HEAD], f"  ⋮ {left_out} lines left out of the picture", *lines[-TAIL:]]


def draw(lines: list[str]) -> str:
    """The lines as SVG, in whatever monospaced font the reader has: nothing is fetched."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in lines:
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title="twinsieve demo", unique_id="demo")
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    TARGET.write_text(draw(excerpt(terminal_output())), encoding="utf-8")
