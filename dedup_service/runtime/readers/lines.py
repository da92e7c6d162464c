"""Lines of a stream in bounded memory, with a sign when the next one has not arrived yet.

Whoever batches lines needs to know that none is waiting, to hand out what it has before it blocks.
A line longer than the limit is read to its end without being held.
"""

import io
import os
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["Line", "Wait", "read_lines"]

CHUNK_BYTES = 2**20

Wait = Callable[[int], bool]
"""Blocks until the descriptor may have input; False asks the reader to stop."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its line end; `cut` where it was longer than the limit and `raw` is only its beginning."""

    number: int
    raw: bytes
    cut: bool = False


def read_lines(stream: BinaryIO, limit_bytes: int, wait: Wait | None = None) -> Iterator[Line | None]:
    """Yield the lines of `stream`; yield None whenever the next read would block.

    wait: called before a read that would block; a False ends the iteration as the end of the input would.
    """
    number, held, size = 0, [], 0
    for chunk in _chunks(stream, wait):
        if chunk is None:
            yield None
            continue
        start = 0
        while (end := chunk.find(b"\n", start) + 1) > 0:
            number += 1
            held.append(chunk[start:end])
            yield _line(number, held, size + end - start, limit_bytes)
            held, size, start = [], 0, end
        if start < len(chunk):
            size += len(chunk) - start
            if size - (len(chunk) - start) <= limit_bytes:
                held.append(chunk[start:])
    if size:
        yield _line(number + 1, held, size, limit_bytes)


def _line(number: int, held: list[bytes], size: int, limit_bytes: int) -> Line:
    if size <= limit_bytes:
        return Line(number, b"".join(held))
    return Line(number, held[0][:1000], cut=True)


def _chunks(stream: BinaryIO, wait: Wait | None) -> Iterator[bytes | None]:
    descriptor = _descriptor(stream)
    if descriptor is None:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
        return
    while True:
        if not select.select([descriptor], [], [], 0)[0]:
            yield None
            if wait is not None and not wait(descriptor):
                return
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _descriptor(stream: BinaryIO) -> int | None:
    """The descriptor to poll, or None for what is no pipe, socket or file (a decompressor, bytes in memory)."""
    if not isinstance(stream, io.BufferedReader | io.FileIO):
        return None
    try:
        return stream.fileno()
    except OSError:
        return None
