"""Opens the kept pages in a folder: the store of the native core, with that of the base from which it goes on.

`rows`, `places` and `evidence` grow; `manifest` is replaced by each commit; `erased` is there between a take-down and
the next commit. `base` is a link to the folder of the base, whose pages are only read. A file of another name is a
person's own and stays.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dedup_service._native import Manifest, PageStore, StoreLabel, read_manifest
from dedup_service.runtime.store.errors import ForeignStoreError, translated_os_errors

MANIFEST = "manifest"
ERASED = "erased"
GROWING = ("rows", "places", "evidence")

_BASE = "base"
_MOST_BASES = 16
"""Bases of bases of a base; more are one that leads to itself."""


class StoreSizes(msgspec.Struct):
    """Sizes when the commit was begun, of what a reader would have to load to measure.

    memory: bytes by structure. live: rows. cells: with an entry, or that turned some away; overflowed: the latter.
    """

    memory: dict[str, int]
    live: int
    cells: int
    overflowed: int

    def note(self) -> bytes:
        """Return them as a commit has them."""
        return msgspec.json.encode(self)

    @classmethod
    def of(cls, manifest: Manifest) -> "StoreSizes | None":
        """Return the sizes that a commit has, None if it has none."""
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(manifest.note, type=cls)
        return None


def committed(folder: Path) -> Manifest | None:
    """Return what the last commit in `folder` says; None before any. Raises as `open_pages`."""
    manifest = read_manifest(folder)
    return manifest if manifest is not None and manifest.number else None


def has_other_files(folder: Path) -> bool:
    """Return whether `folder` has no manifest, but files of something else, as a store of another version."""
    is_there = folder.is_dir() and not (folder / MANIFEST).exists()
    return is_there and any(path.suffix != ".tmp" for path in folder.iterdir())


def open_pages(
    folder: Path, label: StoreLabel | None = None, *, writable: bool = False, held: bool = False, depth: int = 0
) -> PageStore | None:
    """Open the store in `folder` as its last commit left it; None if there is none. label: None for any.

    held: with its bases, it keeps what it has until it is closed, also if their owners remove some of it.
    Raises ForeignStoreError if it belongs to another log, space, base or version; StoreDamagedError if a file is
    missing, too short or altered as far as that is read; StoreFullError if one that is to be written cannot be.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    base = None
    if manifest.base and (label is None or label == manifest.label):
        place = (folder / _BASE).resolve()
        base = open_pages(place, held=held, depth=depth + 1) if depth < _MOST_BASES else None
        if base is None:
            raise ForeignStoreError(f"{folder} goes on from a base in {place}, where there is none: put it there")
    return PageStore.open(folder, label or manifest.label, writable=writable, held=held, base=base)


def open_or_create(folder: Path, label: StoreLabel) -> PageStore:
    """Open the store in `folder` to write, or make an empty one; raises as `open_pages`."""
    store = open_pages(folder, label, writable=True)
    return PageStore.create(folder, label) if store is None else store


def go_on_from(base: PageStore, folder: Path, label: StoreLabel) -> PageStore:
    """Make a store in `folder` that has the rows of `base`, which is closed; see `open_pages`."""
    store = PageStore.create(folder, label, base)
    lead_to(folder, base.folder)
    return store


def lead_to(folder: Path, base: Path) -> None:
    """Let the store in `folder`, if it goes on from a base, find that in the folder `base`."""
    manifest = read_manifest(folder)
    if manifest is None or not manifest.base or (folder / _BASE).resolve() == base.resolve():
        return
    with translated_os_errors(folder):
        temporary = folder / f"{_BASE}.tmp"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(base.resolve())
        temporary.replace(folder / _BASE)
        sync_directory(folder)


def sync_directory(folder: Path) -> None:
    """Make creations, renames and removals in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
