"""The first signal requests a stop, the second ends the process, even a busy one."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hangs import HANG_S

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, time
from dedup_service.interfaces.cli.support.stop_signals import StopSignals

with StopSignals(lambda number: print("stopping", number.name, flush=True)) as signals:
    print("ready", flush=True)
    signals.stop.wait()
    if "busy" in sys.argv:
        time.sleep(3600)
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
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out, err) == (code, f"stopping {number.name}\n", "")


def test_the_second_signal_ends_a_program_that_does_not_stop() -> None:
    """The program is killed at once, without a traceback; also if it is another signal."""
    with start("busy") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping SIGTERM\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (-signal.SIGINT, "")


NATIVE = """
import itertools, signal, sys
from dedup_service.interfaces.cli.support.stop_signals import Interrupt, StopSignals, kill_at_second

def native():
    print("ready", flush=True)
    sum(itertools.repeat(1))

if sys.argv[1] == "main":
    # A shell starts background jobs with SIGINT ignored, and this test may run in one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kill_at_second()
    native()
elif sys.argv[1] == "workers":
    from multiprocessing import active_children
    from dedup_service.runtime.readers.jsonlines import JsonLine
    from dedup_service.runtime.resources import SpaceOptions
    from dedup_service.runtime.workers.preparation import Preparer

    class Endless(JsonLine):
        def text_page(self):
            return None
        def __reduce__(self):
            return sum, (itertools.repeat(1),)

    with Interrupt(), Preparer(SpaceOptions()) as preparer:
        html = b'{"url": "https://a.example/", "html": "<p>a text"}'
        preparer.submit([JsonLine(1, html)]).result()
        print(active_children()[0].pid, flush=True)
        preparer.submit([Endless(1, b"")])
        while not preparer.pool_state().busy:
            pass
        native()
else:
    with Interrupt() if sys.argv[1] == "batch" else StopSignals(lambda number: None):
        native()
"""


def native(kind: str) -> "tuple[subprocess.Popen[str], list[str]]":
    """Start a program that computes in native code, which never gives up the interpreter lock."""
    process = subprocess.Popen([sys.executable, "-c", NATIVE, kind], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while lines[-1] not in {"ready\n", ""}:
        lines.append(process.stdout.readline())
    return process, lines


def deliver(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send a signal and wait until it is delivered: two that wait at once are one."""
    process.send_signal(number)
    deadline = time.monotonic() + HANG_S
    while any(
        int(line.split()[1], 16)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith(("SigPnd", "ShdPnd"))
    ):
        assert time.monotonic() < deadline
    assert process.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part of it")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["batch", "service", "main"])
def test_two_signals_end_a_process_at_once_wherever_it_is(kind: str, number: signal.Signals) -> None:
    """Python runs no handler and no thread while native code computes."""
    process, _ = native(kind)
    try:
        if kind == "main" and number is signal.SIGTERM:
            process.send_signal(number)
        else:
            deliver(process, number)
            process.send_signal(number)
        assert process.wait(HANG_S) == -number
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part of it")
def test_workers_in_native_code_end_with_a_process_that_is_killed() -> None:
    """No worker is left to compute until its time limit."""
    process, lines = native("workers")
    worker = Path(f"/proc/{int(lines[0])}/stat")
    try:
        deliver(process, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + HANG_S
    while worker.exists() and worker.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
