"""SIGTERM and Ctrl-C for a service: the first asks it to finish what it has in hand, the second ends it at once.

How: the interpreter writes each signal's number into a socket (`caught_signals`) the moment it comes, and a thread
reads it there; so neither a busy main thread nor a lock it holds keeps a signal waiting.
Invariant: the second signal ends the process without a clean-up. Nothing depends on one (docs/adr/0012).
"""

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Self

from dedup_service.faces.cli.caught_signals import CODES, caught
from dedup_service.faces.cli.exitcodes import ExitCode

__all__ = ["StopSignals"]


class StopSignals:
    """While entered, signals set `stop` and `code`. told: called in a thread of its own, once, with the first one."""

    def __init__(self, told: Callable[[signal.Signals], None]) -> None:
        self.stop = threading.Event()
        self.code: ExitCode | None = None
        self._told = told
        self._bell, self._clapper = socket.socketpair()
        self._clapper.setblocking(False)
        self._thread = threading.Thread(target=self._listen, name="twinsieve-signals", daemon=True)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(caught(_leave_it_to_the_thread, self._clapper))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()
        self._clapper.close()
        self._thread.join()
        self._bell.close()

    def _listen(self) -> None:
        while numbers := self._bell.recv(1):
            if numbers[0] not in set(CODES):
                continue
            number = signal.Signals(numbers[0])
            if self.code is not None:
                os._exit(CODES[number])
            self.code = CODES[number]
            self.stop.set()
            self._told(number)


def _leave_it_to_the_thread(number: int, frame: FrameType | None) -> None:
    """A handler there has to be, or the signal would end the process."""
