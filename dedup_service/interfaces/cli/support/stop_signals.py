"""SIGINT and SIGTERM as something a command reads from a socket, instead of its end.

Source: signal.set_wakeup_fd, the standard library's own way into select.

Ctrl-C and SIGTERM as a request that the run answers between two batches.

The first signal is noted, and wakes a read that waits for input; a second one ends the process at once.

SIGTERM and Ctrl-C for a service: the first asks it to finish what it has in hand, the second ends it at once.

How: the interpreter writes each signal's number into a socket (`caught_signals`) the moment it comes, and a thread
reads it there; so neither a busy main thread nor a lock it holds keeps a signal waiting.
Invariant: the second signal ends the process without a clean-up. Nothing depends on one (docs/adr/0012).
"""

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Self

from dedup_service.interfaces.cli.support.exit_codes import ExitCode

__all__ = ["CODES", "Interrupt", "StopSignals", "caught"]

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


class Interrupt:
    """While entered, SIGINT and SIGTERM set `code` instead of ending the process."""

    def __init__(self) -> None:
        self.code: ExitCode | None = None
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_read.setblocking(False)
        self._wakeup_write.setblocking(False)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(self._wakeup_read)
        self._entered.enter_context(self._wakeup_write)
        self._entered.enter_context(caught(self._note, self._wakeup_write))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()

    def wait(self, descriptor: int) -> bool:
        """Block until `descriptor` has input or a signal comes; False after a signal."""
        if self.code is None:
            select.select([descriptor, self._wakeup_read.fileno()], [], [])
        return self.code is None

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        if self.code is not None:
            raise KeyboardInterrupt
        self.code = CODES[signal.Signals(number)]


class StopSignals:
    """While entered, signals set `stop` and `code`. told: called in a thread of its own, once, with the first one."""

    def __init__(self, told: Callable[[signal.Signals], None]) -> None:
        self.stop = threading.Event()
        self.code: ExitCode | None = None
        self._told = told
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_write.setblocking(False)
        self._thread = threading.Thread(target=self._listen, name="twinsieve-signals", daemon=True)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(caught(_leave_it_to_the_thread, self._wakeup_write))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()
        self._wakeup_write.close()
        self._thread.join()
        self._wakeup_read.close()

    def _listen(self) -> None:
        while numbers := self._wakeup_read.recv(1):
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
