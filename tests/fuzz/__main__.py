"""`make fuzz`: every parser with many examples, each parser in a process of its own; exit code 1 on a finding.

    python -m tests.fuzz [FILE...]

TWINSIEVE_FUZZ_EXAMPLES: examples of all parsers together, 100,000 by default. A process has a limit
on its address space, and is ended by the system if native code takes too long (see `budget`); the others run all
the same.
Minimal inputs belong into `corpus/found.py`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.budget import CURRENT
from tests.fuzz.examples import TOTAL
from tests.fuzz.reporter import REPORT

HERE = Path(__file__).parent
DEFAULT_TOTAL = 100_000


@dataclass(frozen=True, slots=True)
class Ran:
    """One parser. findings: what is wrong, as text."""

    parser: str
    examples: int
    seconds: float
    findings: list[str]


def _run(file: Path, total: str) -> Ran:
    """Run the tests of one parser in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report, current = Path(folder, "report"), Path(folder, "current")
        started = time.monotonic()
        environment = {**os.environ, TOTAL: total, CURRENT: str(current), REPORT: str(report)}
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", str(file)],
            env=environment, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        seconds = time.monotonic() - started
        found = json.loads(report.read_text("utf-8")) if report.exists() else {"examples": 0, "findings": []}
        findings = found["findings"]
        if ended.returncode < 0:
            last = current.read_text("utf-8") if current.exists() else "0\nnone"
            examples, _, inputs = last.partition("\n")
            found["examples"] = int(examples)
            findings.append(f"ended by {signal.Signals(-ended.returncode).name}; the inputs were\n{inputs}")
        elif ended.returncode and not findings:
            findings.append(f"exit code {ended.returncode}:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return Ran(file.stem.removeprefix("test_"), found["examples"], seconds, findings)


def main(names: list[str]) -> int:
    """Run the parsers in the files `names`, or all; return the exit code."""
    total = os.environ.get(TOTAL) or str(DEFAULT_TOTAL)
    files = [Path(name) for name in names] or sorted(HERE.glob("test_*.py"))
    print(f"{'parser':16} {'examples':>9} {'seconds':>8} {'findings':>9}")
    all_run = []
    for file in files:
        ran = _run(file, total)
        all_run.append(ran)
        print(f"{ran.parser:16} {ran.examples:9,} {ran.seconds:8.1f} {len(ran.findings):9}", flush=True)
    count = sum(len(ran.findings) for ran in all_run)
    print(f"{'all':16} {sum(r.examples for r in all_run):9,} {sum(r.seconds for r in all_run):8.1f} {count:9}")
    for ran in all_run:
        for finding in ran.findings:
            print(f"\n{ran.parser}: {finding}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
