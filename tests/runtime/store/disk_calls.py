"""Which threads call the disk for files of a folder: calls that may wait for it, and bytes written at once."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_WAITING = ("fsync", "fdatasync", "unlink", "rename", "replace")
_WRITING = ("write", "pwrite")


@dataclass(slots=True)
class DiskCalls:
    """Calls for files of `folder`. waiting: (name of the call, file) of each thread; largest: bytes of one write."""

    folder: Path
    waiting: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    largest: dict[int, int] = field(default_factory=dict)

    def note(self, name: str, first: Any, data: Any) -> None:
        """Note a call of this thread with its first arguments."""
        path = Path(f"/proc/self/fd/{first}").readlink() if isinstance(first, int) else Path(first)
        if self.folder not in (path, *path.parents):
            return
        thread = threading.get_ident()
        if name in _WRITING:
            self.largest[thread] = max(len(data), self.largest.get(thread, 0))
        else:
            self.waiting.setdefault(thread, []).append((name, path.name))


@contextmanager
def disk_calls(folder: Path) -> Iterator[DiskCalls]:
    """Record the calls inside."""
    calls = DiskCalls(folder)

    def recorded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(first: Any, *rest: Any, **more: Any) -> Any:
            calls.note(name, first, rest[0] if rest else b"")
            return call(first, *rest, **more)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for name in (*_WAITING, *_WRITING):
            patch.setattr(os, name, recorded(name, getattr(os, name)))
        yield calls
