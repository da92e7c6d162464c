"""Named pipes as inputs: nothing is lost or ended too early, whenever a writer comes, and a wait can be ended."""

import gzip
import itertools
import json
import os
import select
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
import zstandard

from dedup_service.runtime.readers.open import InputOptions, open_source
from dedup_service.runtime.readers.pipe import until_readable
from dedup_service.runtime.readers.record import Mark
from dedup_service.runtime.readers.several import open_sources

LINES = b"".join(json.dumps({"url": f"https://a.example/{n}", "text": "x" * 900}).encode() + b"\n" for n in range(300))
PACKED = {"pipe": bytes, "pipe.gz": gzip.compress, "pipe.zst": zstandard.compress}


def pipe_in(folder: Path, name: str = "pipe") -> Path:
    """Make a FIFO."""
    os.mkfifo(folder / name)
    return folder / name


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("name", PACKED)
def test_a_writer_may_come_at_any_time(tmp_path: Path, name: str, waits: bool) -> None:
    """The input begins when somebody writes, also long after the reader began to wait, and ends with the last one."""
    pipe, waiting = pipe_in(tmp_path, name), threading.Event()

    def write() -> None:
        if waits:
            waiting.wait()
        data = PACKED[name](LINES)
        with pipe.open("wb") as first, pipe.open("wb", buffering=0) as second:
            first.write(data[:-20])
            first.close()
            second.write(data[-20:])

    def wait(descriptor: int) -> bool:
        waiting.set()
        return until_readable(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    with open_source(str(pipe), InputOptions(wait=wait) if waits else None) as source:
        found = [record.raw for record in source.records if record is not None]
    writer.join()
    assert b"".join(found) == LINES


def test_a_slow_writer_gets_answers_in_between(tmp_path: Path) -> None:
    """Whenever a read would wait, the reader says so first."""
    pipe = pipe_in(tmp_path)
    with open_source(str(pipe)) as source:
        assert next(source.records) is None
        with pipe.open("wb", buffering=0) as writer:
            for n in range(3):
                writer.write(b'{"url": "http://a.test/"}\n')
                record = next(source.records)
                assert record is not None
                assert record.number == n + 1
                assert next(source.records) is None
        assert list(source.records) == []


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("begun", [False, True])
def test_a_wait_that_is_ended_is_no_damage(tmp_path: Path, name: str, begun: bool) -> None:
    """Whole lines are given, then None: a caller that looks there whether to stop begins no other input."""
    pipe, last = pipe_in(tmp_path, name), tmp_path / "last.jsonl"
    last.write_bytes(LINES)
    with (
        pipe.open("r+b", buffering=0) if begun else nullcontext() as writer,
        open_sources([str(pipe), str(last)], InputOptions(wait=_has_input)) as source,
    ):
        if writer is not None:
            writer.write(PACKED[name](LINES)[:-10] if name != "pipe" else LINES[:2500])
        given = list(itertools.takewhile(lambda record: record is None or record.source == str(pipe), source.records))
    assert given[-1] is None
    read = b"".join(record.raw for record in given if record)
    assert LINES.startswith(read)
    assert read.endswith(b"\n") == begun


def _has_input(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_lines_behind_a_mark_are_read_of_a_pipe(tmp_path: Path) -> None:
    """What is skipped is waited for, too."""
    pipe, length = pipe_in(tmp_path), LINES.index(b"\n") + 1
    with open_source(str(pipe), after=Mark(1, length)) as source:
        writer = threading.Thread(target=pipe.write_bytes, args=(LINES,))
        writer.start()
        found = [record.number for record in source.records if record is not None]
        writer.join()
    assert found == list(range(2, 301))


def test_the_pipe_of_a_shell_may_have_ended_before_it_is_opened(tmp_path: Path) -> None:
    """Of `filter <(cat pages.jsonl)` the writer may be gone, and its lines are there."""
    reading, writing = os.pipe()
    os.write(writing, LINES[:3000])
    os.close(writing)
    with open_source(f"/dev/fd/{reading}") as source:
        found = b"".join(record.raw for record in source.records if record is not None)
    os.close(reading)
    assert found == LINES[:3000]


@pytest.mark.parametrize("name", PACKED)
def test_a_progress_bar_may_ask_how_much_of_a_pipe_was_read(tmp_path: Path, name: str) -> None:
    """A pipe has neither a size nor a place."""
    with open_source(str(pipe_in(tmp_path, name))) as source:
        assert (source.size_bytes, source.read_bytes()) == (None, 0)
