"""Run commands as a user would, in processes of their own: Twisted's reactor starts only once in each."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 180
FAST = ("--set", "DOWNLOAD_DELAY=0", "--set", "AUTOTHROTTLE_ENABLED=0", "--processes", "1")


def environment() -> dict[str, str]:
    """The environment of this process, with the checkout importable from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def twinsieve(*arguments: object) -> list[str]:
    """The command line as a list."""
    return [sys.executable, "-m", "dedup_service.interfaces.cli", *map(str, arguments)]


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `twinsieve` to its end."""
    return subprocess.run(
        twinsieve(*arguments),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    """The lines of JSON in `text`."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
