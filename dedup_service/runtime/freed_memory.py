"""Give freed memory back to the operating system.

glibc keeps what large temporary arrays used, for the next ones: after a restore or a snapshot some 50 MB that nothing
needs (`malloc_trim(3)`). Other allocators have no such call, and nothing is done.
"""

import ctypes

__all__ = ["return_freed_memory"]


def return_freed_memory() -> None:
    """Return memory that is free within the process; takes milliseconds. Any thread may call it."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return
    trim(ctypes.c_size_t(0))
