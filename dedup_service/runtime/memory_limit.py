"""A limit on the memory of this process, which acts before the kernel does.

    limit = ProcessMemoryLimit(parse_size("8G"))
    limit.require_room()                             # before anything of the state is loaded
    limit.admit(sizes_in_the_manifest, pages)        # before tables are loaded
    bounds = limit.step(256, kept, keep, held_bytes) # before each batch of pages

What counts is anonymous and shared memory (RssAnon and RssShmem of `/proc/self/status`), not mapped files, which the
system takes back by itself. It is read once in CHECK_EVERY pages, which takes some 50 µs.

From BOUNDED_AT of the limit on, a state with bounds of expiry keeps as many pages as it has: memory does not shrink,
since tables keep what they have, but it no longer grows. Only if it grows further by GROWTH, the bound is lowered by
SHARE. Above the limit, a state that keeps all pages is refused, and so is a limit that the rest of the process nearly
fills: the caller makes durable what was decided, and ends.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.rules.keep import Keep
from dedup_service.runtime.freed_memory import return_freed_memory

CHECK_EVERY = 1000
"""Pages between two looks at the memory; a page takes some 160 bytes, so they are 0.2 MB."""

BOUNDED_AT = 0.9
"""Share of the limit from which kept pages are bounded: memory grows by some percent before it stays where it is."""

GROWTH = 0.01
"""Growth since the last bound, in proportion, at which the next one follows."""

SHARE = 0.02
"""How much lower that one is: expiry frees more than what memory grew by."""

HELD_SHARE = 0.1
"""Share of the memory in use that kept pages take at least where fewer of them are of any help."""

_DECIDED = "What was decided is in the state folder, if there is one (--state): the same command goes on with it"

_SETTINGS = "--max-memory, in Scrapy TWINSIEVE_MAX_MEMORY"
_STATUS = Path("/proc/self/status")
_COUNTED = ("RssAnon:", "RssShmem:")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([KMGT]?)(?:I?B)?", re.IGNORECASE)


class MemoryLimitError(StateError):
    """The state needs more memory than the limit allows. What was decided is kept.

    What to do: raise the limit, or bound the kept pages.
    """


def parse_size(text: str) -> int:
    """Return the bytes that a text names: `8G`, `512M`, `1.5 GiB` or a number; units are powers of 1024.

    ConfigurationError for anything else, and for 0.

    >>> parse_size("8G"), parse_size("1.5m"), parse_size("4096")
    (8589934592, 1572864, 4096)
    """
    found = _SIZE.fullmatch(text.strip())
    size_bytes = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if not size_bytes:
        raise ConfigurationError(f"a size is a number above 0 with K, M, G or T behind it, as in 8G; got {text!r}")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """Return a size for people.

    >>> format_size(8 << 30), format_size(1_600_000), format_size(100)
    ('8.00 GiB', '1.53 MiB', '100 bytes')
    """
    for unit in "TGMK":
        if size_bytes >= _UNITS[unit]:
            return f"{size_bytes / _UNITS[unit]:.2f} {unit}iB"
    return f"{size_bytes} bytes"


def process_memory() -> int:
    """Return the anonymous and shared memory of this process in bytes; ConfigurationError where it cannot be read."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError as error:
        raise ConfigurationError(
            f"a limit on memory needs Linux: {_STATUS} cannot be read ({error}); leave {_SETTINGS} out"
        ) from error
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(_COUNTED))


class ProcessMemoryLimit:
    """A limit of `limit_bytes`. read: returns the bytes in use; None: of this process.

    Raises ConfigurationError where they cannot be read, and for a limit below 1.
    """

    def __init__(self, limit_bytes: int, read: Callable[[], int] | None = None) -> None:
        if limit_bytes < 1:
            raise ConfigurationError(f"a limit on memory is 1 byte or more, got {limit_bytes}")
        self._limit_bytes = limit_bytes
        self._read = process_memory if read is None else read
        self._left = 0
        self._bounded_at: int | None = None
        self._read()

    def require_room(self) -> None:
        """Raise ConfigurationError if this process takes more than the limit before it keeps a page."""
        used = self._used()
        if used > self._limit_bytes:
            raise ConfigurationError(
                f"this process takes {format_size(used)} before its first page, and may take "
                f"{format_size(self._limit_bytes)}: give more ({_SETTINGS})"
            )

    def admit(self, memory: Mapping[str, int], pages: int) -> None:
        """Raise MemoryLimitError if structures that are about to be loaded take more than the limit.

        memory: their bytes. pages: how many they have.
        """
        needed = sum(memory.values())
        if needed > self._limit_bytes:
            raise MemoryLimitError(
                f"the tables of {pages:,} kept pages take {format_size(needed)}, the limit is "
                f"{format_size(self._limit_bytes)}: nothing was loaded; raise it ({_SETTINGS})"
            )

    def step(self, pages: int, kept: int, keep: Keep, held_bytes: Callable[[], int]) -> Keep | None:
        """Return other bounds if memory asks for them, None otherwise; call it before `pages` pages are decided.

        kept: pages that are kept now. keep: bounds in force. held_bytes: returns the memory that they take.
        MemoryLimitError if memory is used up, and there are no bounds or other things take it.
        """
        self._left -= pages
        if self._left > 0:
            return None
        used = self._used()
        if used <= (BOUNDED_AT if keep else 1) * self._limit_bytes:
            self._left = CHECK_EVERY
            return None
        held = held_bytes()
        is_of_help = used - held <= self._limit_bytes and held >= HELD_SHARE * used
        if used > self._limit_bytes and not is_of_help:  # neither here nor below, the next call waits for more pages
            raise MemoryLimitError(
                f"this process uses {format_size(used)} of memory, of which {kept:,} kept pages take "
                f"{format_size(held)}: fewer of them do not help against a limit of {format_size(self._limit_bytes)}; "
                f"raise it ({_SETTINGS}). {_DECIDED}"
            )
        if not keep:
            raise MemoryLimitError(
                f"this process uses {format_size(used)} of memory, the limit is {format_size(self._limit_bytes)}, with "
                f"{kept:,} kept pages: raise the limit ({_SETTINGS}), or bound the kept pages (--keep {max(1, kept)})."
                f" {_DECIDED}"
            )
        self._left = CHECK_EVERY
        return self._lower(used, kept, keep) if is_of_help else None

    def bounded(self, keep: Keep) -> str:
        """Return a line about bounds that `step` returned, for a log."""
        return (
            f"the memory limit of {format_size(self._limit_bytes)} is nearly reached: at most {keep.max_pages:,} pages "
            f"are kept from here on, and the earliest expire (recorded as a change of --keep to {keep})"
        )

    def _used(self) -> int:
        """Return the bytes in use; near the limit, without memory that was freed and that the process still has."""
        used = self._read()
        if used > BOUNDED_AT * self._limit_bytes:
            return_freed_memory()
            used = self._read()
        return used

    def _lower(self, used: int, kept: int, keep: Keep) -> Keep | None:
        most = kept
        if self._bounded_at is not None:
            if used <= self._bounded_at * (1 + GROWTH):
                return None
            most = int(min(kept, keep.max_pages or kept) * (1 - SHARE))
        self._bounded_at = used
        lowered = replace(keep, max_pages=max(1, most))
        return lowered if lowered.lowers(keep) else None
