"""Named pipes as inputs, which wait for a writer without hanging the command.

Opening a FIFO waits until something opens it for writing, and Python begins that wait again after a signal whose
handler only takes a note. So it is opened without waiting (`O_NONBLOCK`), and each read waits as the options of the
input say. Linux says of such a descriptor that there is nothing to read until a writer was there, and the end of the
input after the last one has closed it; other systems tell the end at once, so there the opening waits as ever.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Callable
from pathlib import Path

Wait = Callable[[int], bool]
"""Blocks until the descriptor may have input; returns False to stop the reader."""


class ReadingStopped(Exception):  # noqa: N818 - nothing is wrong
    """A wait was ended while a decoder asked for more: what it has so far is neither complete nor damaged."""


def is_pipe(name: str) -> bool:
    """Return whether the path `name` is a FIFO, or the descriptor of a pipe as a shell names it, `/dev/fd/63`."""
    return stat.S_ISFIFO(Path(name).stat().st_mode)


def until_readable(descriptor: int) -> bool:
    """Block until the descriptor may have input; return True."""
    select.select([descriptor], [], [])
    return True


class PipeFile(io.FileIO):
    """A FIFO that is opened at once. Reads of it wait; they raise ReadingStopped if the wait says so."""

    def __init__(self, name: str, wait: Wait | None = None) -> None:
        super().__init__(name, "rb", opener=_open_at_once)
        self._wait = wait or until_readable

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill a buffer with what is there, once something is; 0 at the end."""
        while True:
            if not self._wait(self.fileno()):
                raise ReadingStopped
            count = super().readinto(buffer)
            if count is not None:  # another reader of this pipe was faster
                return count

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes as `readinto` does."""
        return bytes(io.RawIOBase.read(self, -1 if size is None else size) or b"")


def _open_at_once(name: str, flags: int) -> int:
    return os.open(name, flags | (os.O_NONBLOCK if sys.platform == "linux" else 0))
