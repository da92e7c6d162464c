"""How worker processes start, and what they must not do.

They come from a fork server, so they inherit neither threads nor the reactor. They never import the
program's main module: a crawl script without an `if __name__ == "__main__"` guard would start itself again.
They leave Ctrl-C to the parent, yield the processor to its event loop, and end when it ends, however
it ended.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerContext, ForkServerProcess
from types import ModuleType
from typing import Any

__all__ = ["behave_as_worker", "worker_context"]

NICENESS = 5


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _WorkerProcess(ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        with _main_module_hidden():
            return ForkServerProcess._Popen(process_obj)  # noqa: SLF001


class _WorkerContext(ForkServerContext):
    """A multiprocessing context whose processes do not know the main module."""

    Process = _WorkerProcess


def worker_context(*preloaded: str) -> ForkServerContext:
    """Return the context whose processes start from a fork server that has imported the modules `preloaded`.

    Python has one fork server a process: whoever starts it decides, and other workers find the modules loaded too.
    """
    context = _WorkerContext()
    if preloaded:
        context.set_forkserver_preload(list(preloaded))
    return context


def behave_as_worker() -> None:
    """Called first in each worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
