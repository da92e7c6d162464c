"""Runs commands as a user would, each in its own process: Twisted's reactor starts only once in a process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hangs import HANG_S

ROOT = Path(__file__).parents[2]
FAST = ("--set", "DOWNLOAD_DELAY=0", "--set", "AUTOTHROTTLE_ENABLED=0", "--set", "TWINSIEVE_PROCESSES=1")


def environment() -> dict[str, str]:
    """Return the environment of this process, with the checkout importable from any folder."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'crawler'}"}


def twinsieve(*arguments: object) -> list[str]:
    """Return the command line as a list."""
    return [sys.executable, "-m", "dedup_service.interfaces.cli", *map(str, arguments)]


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `twinsieve` to its end."""
    return subprocess.run(
        twinsieve(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    """Return the lines of JSON in `text`, decoded."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
