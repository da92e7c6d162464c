"""Sizes of a store by structure, from its manifest and the names of its files: nothing is opened, nothing locked.

Memory is what the tables took when the last commit was begun, so it is exact there, and reading it costs nothing.
"""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_files import GROWING, MANIFEST, StoreSizes, committed

_BLOCK_BYTES = 512
"""Unit of `st_blocks`."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store has at its last commit; None, or empty, before any.

    Attributes:
        commit_sequence: Last record of the log that is in it.
        commit_age_s: Age of the commit in seconds.
        memory: Bytes of memory by structure in a process that has the store open.
        cells: Cells with an entry, or that turned some away.
        cells_overflowed: Those of them that turned some away.
        rows: Rows that it has had, those of a base included.
        live_rows: Those of them that are entries; the others take no space.
        disk: Bytes on disk by structure, now.
        commit_damage: Why the last commit cannot be read: the next opening builds the kept pages again. None if it can.
    """

    commit_sequence: int | None
    commit_age_s: float | None
    memory: dict[str, int]
    cells: int | None
    cells_overflowed: int | None
    rows: int
    live_rows: int | None
    disk: dict[str, int]
    commit_damage: str | None = None


def store_info(folder: Path) -> StoreInfo:
    """Return the sizes of the store in `folder`, which may be missing; ForeignStoreError for another version."""
    manifest, damage = None, None
    try:
        manifest = committed(folder)
    except StoreDamagedError as error:
        damage = str(error)
    sizes = None if manifest is None else StoreSizes.of(manifest)
    return StoreInfo(
        commit_sequence=None if manifest is None else manifest.sequence,
        commit_age_s=None if manifest is None else max(0.0, time.time() - (folder / MANIFEST).stat().st_mtime),
        memory={} if sizes is None else sizes.memory,
        cells=None if sizes is None else sizes.cells,
        cells_overflowed=None if sizes is None else sizes.overflowed,
        rows=0 if manifest is None else manifest.next_row,
        live_rows=None if manifest is None else manifest.live_rows,
        disk=_disk(folder),
        commit_damage=damage,
    )


def _disk(folder: Path) -> dict[str, int]:
    disk: Counter[str] = Counter()
    with suppress(FileNotFoundError, NotADirectoryError):  # `folder` is missing
        for path in folder.iterdir():
            disk[_structure(path.name)] += disk_bytes(path)
    return dict(sorted(disk.items()))


def disk_bytes(path: Path) -> int:
    """Return the bytes of a file on the disk, 0 if it is gone; files that grow are larger than what they use.

    What a link leads to takes space elsewhere.
    """
    try:
        status = path.lstat()
    except OSError:
        return 0
    return min(status.st_size, status.st_blocks * _BLOCK_BYTES)


def _structure(name: str) -> str:
    return name if name in GROWING else "commit"
