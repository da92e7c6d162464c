"""Ctrl-C and SIGTERM as a request that the run answers between two batches.

The first signal is noted, and wakes a read that waits for input; a second one ends the process at once.
Source of the wake-up: signal.set_wakeup_fd, the standard library's own way into select.
"""

import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

from dedup_service.faces.cli.exitcodes import ExitCode

__all__ = ["Interrupt"]

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


class Interrupt:
    """While entered, SIGINT and SIGTERM set `code` instead of ending the process."""

    def __init__(self) -> None:
        self.code: ExitCode | None = None
        self._earlier: dict[signal.Signals, Any] = {}
        self._bell, self._clapper = socket.socketpair()
        self._bell.setblocking(False)
        self._clapper.setblocking(False)

    def __enter__(self) -> Self:
        self._earlier = {number: signal.signal(number, self._note) for number in CODES}
        self._earlier_descriptor = signal.set_wakeup_fd(self._clapper.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._earlier_descriptor)
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        self._bell.close()
        self._clapper.close()

    def wait(self, descriptor: int) -> bool:
        """Block until `descriptor` has input or a signal comes; False after a signal."""
        if self.code is None:
            select.select([descriptor, self._bell.fileno()], [], [])
        return self.code is None

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        if self.code is not None:
            raise KeyboardInterrupt
        self.code = CODES[signal.Signals(number)]
