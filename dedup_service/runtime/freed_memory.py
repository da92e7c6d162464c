"""Give freed memory back to the operating system.

glibc keeps what temporary arrays used, for the next ones: after a restore or a snapshot some 50 MB that nothing needs
(`malloc_trim(3)`). And each time that an array of its own is freed, it raises the size from which arrays have memory of
their own, up to 32 MB: later ones lie between small objects, and what a thread frees stays with that thread, where
`malloc_trim` does not reach it. A fixed size ends that (`mallopt(3)`).

Other allocators have no such calls, and nothing is done.

Python looks for cycles of freed objects from time to time, in all that there are: 70 ms for those of imported
libraries, in which nothing is decided. They stay, so they are left out of it.
"""

import ctypes
import gc
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_OWN_MEMORY_BYTES = 1 << 20
"""Size from which an array has memory of its own, which goes back as soon as it is freed. Few temporary ones are so
large: to provide the pages of memory again takes .1 µs a KB."""

_FREE_BYTES = 4 << 20
"""Free memory at the end of what small objects share, from which on it goes back."""


def keep_little_freed_memory() -> None:
    """Let this process keep little of what it frees, from now on; for processes that have tables."""
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    option(ctypes.c_int(_M_MMAP_THRESHOLD), ctypes.c_int(_OWN_MEMORY_BYTES))
    option(ctypes.c_int(_M_TRIM_THRESHOLD), ctypes.c_int(_FREE_BYTES))


@cache
def leave_out_of_collections() -> None:
    """Leave the objects that there are now out of collections of garbage. A second call in a process does nothing."""
    gc.collect()
    gc.freeze()


def return_freed_memory() -> None:
    """Return memory that is free within the process; takes milliseconds. Any thread may call it."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return
    trim(ctypes.c_size_t(0))
