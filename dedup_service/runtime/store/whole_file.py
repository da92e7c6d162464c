"""Files that are written once, as a whole: the manifest has their number, size and checksum.

Each commit writes the next number, and the file of the commit before goes with it. A file that no manifest names is
deleted when the store is opened, so what a crash cut off is never read. Checksums are xxh3_64.
"""

import os
from pathlib import Path

import xxhash

from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.manifest import ExtraLabel


def write_whole(path: Path, content: bytes | memoryview) -> int:
    """Write `content` durably to `path`; return its checksum. StoreFullError if the disk does not take it.

    The entry in the directory is for the caller to sync.
    """
    with translated_os_errors(path), path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return xxhash.xxh3_64_intdigest(content)


def read_whole(path: Path, length: int, checksum: int) -> bytes:
    """Return the content of `path`; StoreDamagedError if it is missing, cut off or altered."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}") from error
    if len(content) != length:
        raise StoreDamagedError(f"{path} has {len(content)} bytes, the manifest says {length}")
    if xxhash.xxh3_64_intdigest(content) != checksum:
        raise StoreDamagedError(f"{path} does not match its checksum")
    return content


def extra_path(folder: Path, number: int) -> Path:
    """Return the file of what commit `number` has beside the rows."""
    return folder / f"extra-{number}"


def write_extra(folder: Path, number: int, content: bytes) -> ExtraLabel | None:
    """Write what a commit has beside the rows, durably; None, and no file, if that is nothing."""
    if not content:
        return None
    return ExtraLabel(number, len(content), write_whole(extra_path(folder, number), content))


def read_extra(folder: Path, label: ExtraLabel | None) -> bytes:
    """Return what `write_extra` wrote; StoreDamagedError if it is altered or missing."""
    return b"" if label is None else read_whole(extra_path(folder, label.number), label.length, label.checksum)
