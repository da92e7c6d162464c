"""SIGINT and SIGTERM as something a command reads from a socket, instead of its end.

Source: signal.set_wakeup_fd, the standard library's own way into select.
"""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dedup_service.faces.cli.exitcodes import ExitCode

__all__ = ["CODES", "caught"]

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}
"""The signals that are caught, and what a command exits with that one of them stopped."""


@contextmanager
def caught(handler: Callable[[int, FrameType | None], None], clapper: socket.socket) -> Iterator[None]:
    """While entered, each of CODES calls `handler` and writes its number into `clapper`; then all is as it was.

    clapper: does not block. The number is written the moment the signal comes, `handler` is called when the main
    thread next runs bytecode.
    """
    earlier = {number: signal.signal(number, handler) for number in CODES}
    earlier_descriptor = signal.set_wakeup_fd(clapper.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier_descriptor)
        for number, former in earlier.items():
            signal.signal(number, former)
