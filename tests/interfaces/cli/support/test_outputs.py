"""Outputs have whole batches, also after a failed write."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.outputs import OutputError, OutputFile, check_distinct

APPENDING = (
    "from dedup_service.interfaces.cli.support.outputs import OutputFile; OutputFile(chr(45)).write([bytes(5000)])"
)


@contextmanager
def files_end_at(size_bytes: int) -> Iterator[None]:
    """Limit the size of every file of this process, to simulate a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_batch_that_does_not_fit_is_removed(tmp_path: Path) -> None:
    """After a failed write, the file ends where the previous batch ended."""
    path = tmp_path / "verdicts.jsonl"
    with OutputFile(str(path)) as output, files_end_at(1000):
        output.write([b"first\n", b"second\n"])
        with pytest.raises(OutputError, match=r"verdicts\.jsonl: File too large"):
            output.write([b"x" * 700 + b"\n", b"y" * 700 + b"\n"])
        output.write([b"third\n"])
    assert path.read_bytes() == b"first\nsecond\nthird\n"


def test_an_appended_file_keeps_its_content(tmp_path: Path) -> None:
    """Standard output opened with >> loses nothing if the disk is full."""
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"earlier\n")
    command = f"ulimit -f 1; {sys.executable} -c '{APPENDING}' >> {path}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"earlier\n"


def test_a_closed_pipe_is_distinguished_from_a_full_disk(tmp_path: Path) -> None:
    """A closed pipe raises BrokenPipeError: the reader may stop at any time."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with OutputFile(str(pipe)) as output:
        output.write([b"read\n"])
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            output.write([b"not read\n"])


def test_a_full_pipe_that_does_not_block_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any process that shares a pipe can set it so; a slow reader gets every line all the same."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    outcomes = iter([BlockingIOError(), None])
    write = os.write

    def full_at_first(descriptor: int, data: bytes) -> int:
        if (error := next(outcomes)) is not None:
            raise error
        return write(descriptor, data)

    with OutputFile(str(pipe)) as output:
        monkeypatch.setattr(os, "write", full_at_first)
        output.write([b"read\n"])
    assert os.read(reader, 100) == b"read\n"
    os.close(reader)


def test_two_outputs_in_one_file_are_refused(tmp_path: Path) -> None:
    """They are recognised under different names, too; /dev/null may be named twice."""
    name = str(tmp_path / "out")
    with pytest.raises(ConfigurationError, match="--output and --kept are the same file"):
        check_distinct(**{"--output": name, "--kept": f"{tmp_path}/./out"})
    (tmp_path / "out").touch()
    (tmp_path / "link").hardlink_to(tmp_path / "out")
    with pytest.raises(ConfigurationError, match="--output and FILE are the same file"):
        check_distinct(**{"--output": name, "FILE": f"{tmp_path}/link"})
    check_distinct(**{"--output": name, "--kept": None, "--errors": os.devnull, "more": os.devnull})
