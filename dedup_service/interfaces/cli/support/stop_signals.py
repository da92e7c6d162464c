"""SIGINT and SIGTERM as requests: the first signal finishes the current work, the second kills the process.

`Interrupt` is for batch commands: the run checks it between two batches, and a read that waits for input
wakes up. `StopSignals` is for services: a thread receives the signal and sets an event that the service
waits for.

How: the interpreter writes the number of each signal to a socket as soon as it arrives
(`signal.set_wakeup_fd`). `Interrupt` includes that socket in its `select`; the thread of `StopSignals`
reads from it, so a busy main thread does not delay the first signal.

No thread of Python runs while native code holds the interpreter lock, so none can be trusted with the second signal.
The kernel therefore restores the default action of a signal as it delivers it for the first time (`SA_RESETHAND`):
the second one kills the process, whatever runs. To a shell that is exit code 130 or 143. C libraries without
`sysv_signal` (macOS, musl) restore the default as soon as Python sees the first signal.
Invariant: the second signal ends a process without any clean-up. Nothing depends on one (docs/adr/0012); its workers
end with it.
"""

import ctypes
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Self

from dedup_service.interfaces.cli.support.exit_codes import ExitCode

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}
"""The signals that are caught, and the exit code of a command that one of them stopped."""


def kill_at_second(numbers: Iterable[signal.Signals] = tuple(CODES)) -> None:
    """Keep the handlers of these signals for one delivery each; the next one has the default action.

    Call it after `signal.signal`, which sets a handler for every delivery.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "sysv_signal"):
        return
    libc.sysv_signal.argtypes, libc.sysv_signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    numbers = set(numbers)
    former = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        for number in numbers:
            handler = libc.sysv_signal(number, None)  # SIG_DFL is the null pointer
            libc.sysv_signal(number, handler)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _kill_at_next() -> None:
    """Restore the default action of all signals of CODES, from any thread."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    for number in CODES:
        libc.signal(number, None)


class Interrupt:
    """While entered, SIGINT and SIGTERM set `code` instead of ending the process; a second one kills it."""

    def __init__(self) -> None:
        self.code: ExitCode | None = None
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_read.setblocking(False)
        self._wakeup_write.setblocking(False)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(self._wakeup_read)
        self._entered.enter_context(self._wakeup_write)
        self._entered.enter_context(_caught(self._on_signal, self._wakeup_write))
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def stopped(self) -> bool:
        """Whether a signal has arrived."""
        return self.code is not None

    def wait(self, descriptor: int) -> bool:
        """Block until `descriptor` has input or a signal arrives; return False after a signal."""
        if self.code is None:
            select.select([descriptor, self._wakeup_read.fileno()], [], [])
        return self.code is None

    @property
    def event(self) -> threading.Event:
        """The same as an event, for what waits for one; nobody sets it."""
        return _InterruptEvent(self)

    def pause(self, timeout_s: float | None) -> None:
        """Wait for so long, or until a signal arrives."""
        if self.code is None:
            select.select([self._wakeup_read.fileno()], [], [], timeout_s)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        self.code = CODES[signal.Signals(number)]
        _kill_at_next()


class _InterruptEvent(threading.Event):
    """An interrupt as an event. An ordinary one that a handler sets may wait for the lock of the wait that it ends."""

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__()
        self._interrupt = interrupt

    def is_set(self) -> bool:
        """Whether a signal has arrived."""
        return self._interrupt.stopped()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a signal arrives; return whether one has."""
        self._interrupt.pause(timeout)
        return self._interrupt.stopped()


class StopSignals:
    """While entered, a signal sets `stop` and `code`; a second one kills the process.

    on_stop: called once, with the first signal, in a separate thread.
    """

    def __init__(self, on_stop: Callable[[signal.Signals], None]) -> None:
        self.stop = threading.Event()
        self.code: ExitCode | None = None
        self._on_stop = on_stop
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_write.setblocking(False)
        self._thread = threading.Thread(target=self._listen, name="twinsieve-signals", daemon=True)
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._entered.enter_context(_caught(_leave_to_thread, self._wakeup_write))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()
        self._wakeup_write.close()
        self._thread.join()
        self._wakeup_read.close()

    def _listen(self) -> None:
        while numbers := self._wakeup_read.recv(1):
            if numbers[0] not in set(CODES):
                continue
            _kill_at_next()
            number = signal.Signals(numbers[0])
            self.code = CODES[number]
            self.stop.set()
            self._on_stop(number)


def _leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Do nothing: without a handler, the signal would end the process."""


@contextmanager
def _caught(handler: Callable[[int, FrameType | None], None], wakeup: socket.socket) -> Iterator[None]:
    """Install `handler` for each signal of CODES and `wakeup` for its number; restore both at exit.

    wakeup: a non-blocking socket. The number is written as soon as the signal arrives; `handler` is called
    when the main thread next runs bytecode.
    """
    former_handlers = {number: signal.signal(number, handler) for number in CODES}
    kill_at_second()
    former_descriptor = signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(former_descriptor)
        for number, former in former_handlers.items():
            signal.signal(number, former)
