"""Signals and pipes: decided pages are written, and no verdict waits for further input."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.interfaces.cli.running import page, write_lines

TWINSIEVE = [sys.executable, "-m", "dedup_service.interfaces.cli"]
COMMAND = [*TWINSIEVE, "filter", "--quiet"]


@contextmanager
def running(*arguments: object, command: Sequence[str] = COMMAND) -> Iterator[subprocess.Popen[bytes]]:
    """Start a filter that reads from a pipe, or another command; kill it at the end of the test."""
    command = [*command, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def feed(process: subprocess.Popen[bytes], *numbers: int) -> list[dict[str, object]]:
    """Send pages and read their verdicts, leaving the pipe open."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(json.dumps(page(number)).encode() + b"\n" for number in numbers))
    process.stdin.flush()
    return [json.loads(process.stdout.readline()) for _ in numbers]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_waiting_run_with_its_verdicts_written(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """Verdicts are written as soon as no input waits. The same command completes the interrupted run."""
    state = tmp_path / "state"
    with running("--state", state) as process:
        first = feed(process, 1, 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
        assert (process.returncode, out, err) == (code, b"", b"")
    content = write_lines(tmp_path / "pages.jsonl", [page(1), page(2), page(3)]).read_bytes()
    done = subprocess.run([*COMMAND, "--state", str(state)], input=content, capture_output=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[:2] == first
    assert [line["sequence"] for line in lines] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz"])
def test_a_signal_ends_a_run_that_waits_for_the_writer_of_a_pipe(name: str, tmp_path: Path) -> None:
    """What was read before has its verdicts, and the input behind it is left for the next run."""
    first, waited_for = tmp_path / "first.jsonl", tmp_path / name
    last = write_lines(tmp_path / "last.jsonl", [page(2)])
    os.mkfifo(first)
    os.mkfifo(waited_for)
    with running(first, waited_for, last) as process:
        write_lines(first, [page(1)])  # once the command reads it
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HANG_S)
        assert (process.returncode, err) == (143, b"")
    assert [json.loads(line)["id"] for line in out.splitlines()] in (["p1"], [])


@pytest.mark.slow
def test_a_closed_output_pipe_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    """`twinsieve filter … | head` is not an error."""
    path = write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(2000)])
    with running(path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=HANG_S) == 141
        assert process.stderr.read() == b""
