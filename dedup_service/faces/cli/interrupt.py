"""Ctrl-C and SIGTERM as a request that the run answers between two batches.

The first signal is noted, and wakes a read that waits for input; a second one ends the process at once.
"""

import select
import signal
import socket
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Self

from dedup_service.faces.cli.caught_signals import CODES, caught
from dedup_service.faces.cli.exitcodes import ExitCode

__all__ = ["Interrupt"]


class Interrupt:
    """While entered, SIGINT and SIGTERM set `code` instead of ending the process."""

    def __init__(self) -> None:
        self.code: ExitCode | None = None
        self._bell, self._clapper = socket.socketpair()
        self._bell.setblocking(False)
        self._clapper.setblocking(False)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(self._bell)
        self._entered.enter_context(self._clapper)
        self._entered.enter_context(caught(self._note, self._clapper))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()

    def wait(self, descriptor: int) -> bool:
        """Block until `descriptor` has input or a signal comes; False after a signal."""
        if self.code is None:
            select.select([descriptor, self._bell.fileno()], [], [])
        return self.code is None

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        if self.code is not None:
            raise KeyboardInterrupt
        self.code = CODES[signal.Signals(number)]
