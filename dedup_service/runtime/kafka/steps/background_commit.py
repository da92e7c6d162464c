"""One commit at a time in a thread of its own: the step reads and decides while the brokers acknowledge.

    commit.start(lambda: producer.commit(messages, offsets, group))
    ...
    if commit.done(timeout_s):
        commit.result()                                        # raises what the action raised

Invariant: while a commit runs, nobody else uses what it uses, the producer. One thread uses an instance. The thread of
a commit does not keep the process from ending.
"""

import threading
from collections.abc import Callable


class BackgroundCommit:
    """Runs an action in a thread, and gives its result to the thread that started it."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._error: BaseException | None = None

    def start(self, action: Callable[[], object]) -> None:
        """Run the action; none may be running."""
        assert self._thread is None, "one commit at a time"
        self._done.clear()
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(action,), name="commit", daemon=True)
        self._thread.start()

    def done(self, timeout_s: float = 0.0) -> bool:
        """Whether the action has ended, or does within the timeout."""
        return self._done.wait(timeout_s)

    def result(self) -> None:
        """Wait for the end of the action; raise what it raised."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:  # it belongs to the thread that waits
            self._error = error
        finally:
            self._done.set()
