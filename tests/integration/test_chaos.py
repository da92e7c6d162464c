"""A short round of chaos; `python -m benchmarks.chaos` has fifty long ones, with every fault there is.

It runs in a process of its own: what the client library leaves open when a broker dies is no concern of this one.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_page_is_answered_once_and_as_the_oracle_says_whatever_dies(tmp_path: Path) -> None:
    """Services, their workers, their state and the broker die in the middle; what a plain consumer reads is right."""
    command = [sys.executable, "-m", "benchmarks.chaos", "--short", "--folder", str(tmp_path)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + "".join(path.read_text() for path in tmp_path.glob("*/*.log"))
    counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", done.stdout)}
    assert counts["pages"] >= 800
    assert counts["starts"] > 4
