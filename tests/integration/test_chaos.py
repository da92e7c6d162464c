"""Rounds of chaos, short and long ones, in `make test-all`; `python -m tests.chaos` runs fifty.

It runs in a separate process, so that connections that the client library leaves open do not affect other
tests.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hangs import HANG_S


@pytest.mark.long
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(("--short",), id="short"),
        pytest.param(("--short", "--shards", "2"), id="short, with shards"),
        pytest.param(("--rounds", "3", "--seed", "long"), id="three rounds"),
        pytest.param(
            ("--rounds", "3", "--seed", "long", "--shards", "4", "--pages", "1200"), id="three rounds with shards"
        ),
    ],
)
def test_every_page_is_answered_once_with_the_oracles_verdict_under_faults(
    rounds: tuple[str, ...], tmp_path: Path
) -> None:
    """Services or shards, workers, state and the broker fail; a plain consumer still reads the right output."""
    command = [sys.executable, "-m", "tests.chaos", *rounds, "--folder", str(tmp_path)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=12 * HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + "".join(path.read_text() for path in tmp_path.glob("*/*.log"))
    counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", done.stdout)}
    assert counts["pages"] >= 800
    assert counts["starts"] > 4
