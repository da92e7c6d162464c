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
    """A wait was ended: what was read so far is neither complete nor damaged."""


def is_pipe(name: str) -> bool:
    """Return whether the path `name` is a FIFO, or the descriptor of a pipe as a shell names it, `/dev/fd/63`."""
    return stat.S_ISFIFO(Path(name).stat().st_mode)


def until_readable(descriptor: int) -> bool:
    """Block until the descriptor may have input; return True."""
    select.select([descriptor], [], [])
    return True


def opened_pipe(name: str) -> io.FileIO:
    """Open a FIFO at once; whoever reads it waits."""
    return io.FileIO(name, "rb", opener=_open_at_once)


def _open_at_once(name: str, flags: int) -> int:
    return os.open(name, flags | (os.O_NONBLOCK if sys.platform == "linux" else 0))
