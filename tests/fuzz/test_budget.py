"""What takes too much time or memory is a finding, whoever spends it."""

import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests.fuzz.budget import Budget, within
from tests.hangs import HANG_S

SMALL = Budget(seconds=0.1, microseconds_a_byte=0, mebibytes=16, bytes_a_byte=0)
NATIVE = """
import hashlib
from tests.fuzz.budget import Budget, within
with within("a", budget=Budget(seconds=0.1)):
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 1 << 30)  # minutes, in which no signal handler of Python runs
"""
FREED = """
from tests.fuzz.budget import Budget, within
with within("a", budget=Budget(mebibytes=16, bytes_a_byte=0)):
    bytearray(b"x") * (256 << 20)
"""


def endless() -> None:
    """Go on after every Exception, as a parser may."""
    while True:
        with suppress(Exception):
            sum(range(1000))


def test_python_code_without_end_is_interrupted() -> None:
    """A loop ends at the limit of processor time, also inside a parser that catches every Exception."""
    with pytest.raises(AssertionError, match="interrupted after"), within("a", budget=SMALL):
        endless()


def test_native_code_without_end_ends_its_process() -> None:
    """The system ends it, and its parent sees by which signal."""
    ended = subprocess.run([sys.executable, "-c", NATIVE], timeout=HANG_S, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGPROF


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the resident set can be reset on Linux alone")
def test_memory_that_was_used_and_freed_counts() -> None:
    """The peak counts, not what is left. In a process of its own: a long one may give back as much meanwhile."""
    ended = subprocess.run([sys.executable, "-c", FREED], timeout=HANG_S, capture_output=True, text=True, check=False)
    assert "AssertionError" in ended.stderr
    assert "MiB for 1 bytes" in ended.stderr


def test_waiting_is_free() -> None:
    """Time in which the processor does something else is not the parser's."""
    with within("a", budget=SMALL):
        time.sleep(0.2)
