"""The files in the folder of a store: which ones a manifest names, and what a crash left.

A file of another name is a person's own and stays.
"""

import re
from pathlib import Path
from typing import NamedTuple

from dedup_service.runtime.store.block_file import BLOCK_BYTES
from dedup_service.runtime.store.errors import translated_os_errors
from dedup_service.runtime.store.live_rows import live_path
from dedup_service.runtime.store.manifest import Manifest, SegmentLabel
from dedup_service.runtime.store.whole_file import extra_path

_OWN_FILE = re.compile(r"\d{5,}-\d+\.(rows|spans|evidence|names|texts|members)(\.sums)?|(live|extra)-\d+|.*\.tmp")


def is_own_file(name: str) -> bool:
    """Return whether a store gives a file this name; not the manifest."""
    return _OWN_FILE.fullmatch(name) is not None


def named_paths(folder: Path, manifest: Manifest) -> set[Path]:
    """Return all files that a manifest names."""
    known = commit_paths(folder, manifest)
    for label in manifest.segments:
        known |= segment_paths(folder, label)
    return known


def segment_paths(folder: Path, label: SegmentLabel) -> set[Path]:
    """Return the files of a segment."""
    used = [name for name, file in label.files.items() if file.length]
    paths = {folder / f"{label.stem}.{name}{suffix}" for name in used for suffix in ("", ".sums")}
    return paths | ({folder / f"{label.stem}.members"} if label.compacted else set())


def commit_paths(folder: Path, manifest: Manifest) -> set[Path]:
    """Return the files of live rows that a manifest names, and of what came with the commit."""
    paths = set() if manifest.live is None else {live_path(folder, manifest.live.number)}
    paths |= set() if manifest.extra is None else {extra_path(folder, manifest.extra.number)}
    return paths


class NamedFile(NamedTuple):
    """A file of a store. size_bytes: of what counts. label: what a manifest says of its content."""

    name: str
    size_bytes: int
    label: str


def row_files(manifest: Manifest) -> list[NamedFile]:
    """Return the files that a manifest names: what a read-only store opens."""
    files: list[NamedFile] = []
    for segment in manifest.segments:
        for name, file in segment.files.items():
            label = f"{file}"
            if file.length:
                files.append(NamedFile(f"{segment.stem}.{name}", file.length, label))
            if blocks := file.length // BLOCK_BYTES:
                files.append(NamedFile(f"{segment.stem}.{name}.sums", 4 * blocks, label))
        if segment.compacted:
            files.append(NamedFile(f"{segment.stem}.members", manifest.segment_rows // 8, f"{segment.members_sum}"))
    if manifest.live is not None:
        files.append(NamedFile(f"live-{manifest.live.number}", manifest.live.length, f"{manifest.live}"))
    if manifest.extra is not None:
        files.append(NamedFile(f"extra-{manifest.extra.number}", manifest.extra.length, f"{manifest.extra}"))
    return files


def delete_unknown_files(folder: Path, manifest: Manifest) -> None:
    """Delete what a crash left in `folder`: files of a store that the manifest does not name."""
    known = named_paths(folder, manifest)
    with translated_os_errors(folder):
        for path in folder.iterdir():
            if path not in known and is_own_file(path.name):
                path.unlink()
