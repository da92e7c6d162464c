"""How long a test waits for an event before it fails: a limit for hangs, never a guess of how long something takes."""

import time
from collections.abc import Callable

HANG_S = 300.0
"""Limit of every wait in a test. A loaded machine needs a fraction of it; what must be fast is measured in work."""


def wait_until(condition: Callable[[], object], found: Callable[[], object] = lambda: "") -> None:
    """Wait until `condition` is true. found: what the error shows if it never is."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, found()
        time.sleep(0.01)
