"""Lines in bounded memory, and None when the next one has not arrived."""

import io
import os
import tracemalloc

from dedup_service.runtime.readers import jsonlines as lines_module
from dedup_service.runtime.readers.jsonlines import InputLine, read_json_lines, read_lines


def test_a_long_line_is_not_kept_in_memory() -> None:
    """Sixty-four megabytes without a line end need the memory of a few chunks."""
    size = 64 * lines_module.CHUNK_BYTES
    tracemalloc.start()
    try:
        stream = io.BufferedReader(Zeros(size))
        found = list(read_lines(stream, 2 * lines_module.CHUNK_BYTES))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.number, line.cut) for line in found if line] == [(1, True)]
    assert peak < 8 * lines_module.CHUNK_BYTES


class Zeros(io.RawIOBase):
    """A stream of `size` zero bytes."""

    def __init__(self, size: int) -> None:
        self._left = size

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        count = min(len(view), self._left)
        view[:count] = bytes(count)
        self._left -= count
        return count


def test_a_pipe_yields_none_when_no_line_is_waiting() -> None:
    """It yields None exactly when a read would block; later lines are read as usual."""
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\nthr")
    with os.fdopen(reading, "rb", buffering=0) as stream:
        found = read_lines(stream, 100)
        assert [next(found), next(found), next(found)] == [InputLine(1, b"one\n"), InputLine(2, b"two\n"), None]
        os.write(writing, b"ee\n")
        assert next(found) == InputLine(3, b"three\n")
        os.close(writing)
        assert list(found) in ([], [None])


def test_a_wait_that_returns_false_ends_the_input() -> None:
    """After a signal nothing more is read, and half a line is none."""
    reading, writing = os.pipe()
    os.write(writing, b'{"url": "http://a.test/"}\n{"url": "http')
    with os.fdopen(reading, "rb", buffering=0) as stream:
        found = list(read_json_lines(stream, wait=lambda _: False))
    os.close(writing)
    assert [record and record.number for record in found] == [1, None, None]
