"""The first signal requests a stop, the second ends the process, even a busy one."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
from dedup_service.interfaces.cli.support.stop_signals import StopSignals

with StopSignals(lambda number: print("stopping", number.name, flush=True)) as signals:
    print("ready", flush=True)
    signals.stop.wait(60)
    if "busy" in sys.argv:
        time.sleep(60)
sys.exit(signals.code)
"""


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start the program and wait until it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_first_signal_requests_a_stop(number: signal.Signals, code: int) -> None:
    """The program ends by itself, with the exit code of the signal."""
    with start() as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, f"stopping {number.name}\n", "")


def test_the_second_signal_ends_a_program_that_does_not_stop() -> None:
    """The program ends at once, without a traceback."""
    with start("busy") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping SIGTERM\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
