"""Make docs/images/demo.svg from a real run of `twinsieve demo`.

Run: .venv/bin/python docs/images/picture.py

The picture shows the output of the command on a terminal 150 columns wide. The middle of the long table is
omitted, and the picture says so.
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
    """Return the lines that the demo prints, including colours."""
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "demo"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603


def excerpt(lines: list[str]) -> list[str]:
    """Return the first and last lines, with a line for the omitted ones."""
    if len(lines) <= HEAD + TAIL:
        return lines
    omitted = len(lines) - HEAD - TAIL
    return [*lines[:HEAD], f"  ⋮ {omitted} lines omitted from the picture", *lines[-TAIL:]]


def draw(lines: list[str]) -> str:
    """Return the lines as SVG in the reader's monospaced font, so that no font is fetched."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in lines:
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title="twinsieve demo", unique_id="demo")
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    TARGET.write_text(draw(excerpt(terminal_output())), encoding="utf-8")
