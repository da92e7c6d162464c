"""Damage to a state folder, as by a bad disk: files deleted, cut short or changed."""

import os
import random
import shutil
from pathlib import Path

from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER


def damage(folder: Path, rng: random.Random) -> str:
    """Damage the state folder of a stopped service and return a description. The process's name survives."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if not files or rng.random() < 0.2:
        shutil.rmtree(folder, ignore_errors=True)
        return "its state folder was deleted"
    snapshots = [path for path in files if path.parent.name == PAGES_FOLDER]
    names = [path for path in files if path.name.startswith("names.")]
    if names and rng.random() < 0.3:
        for path in names:
            path.unlink()
        return f"the names {[path.name for path in names]} were deleted"
    if not snapshots:
        return f"no snapshot yet among {[path.name for path in files]}"
    path = rng.choice(snapshots)
    size, how = path.stat().st_size, rng.choice((_delete, _cut, _garble))
    how(path, rng.random())
    return f"{path.name} ({size} bytes): {(how.__doc__ or '').rstrip('.').lower()}"


def _delete(path: Path, _place: float) -> None:
    """Deleted."""
    path.unlink()


def _cut(path: Path, place: float) -> None:
    """Cut short."""
    os.truncate(path, int(path.stat().st_size * place))


def _garble(path: Path, place: float) -> None:
    """One byte changed."""
    content = bytearray(path.read_bytes())
    if content:
        content[int(len(content) * place)] ^= 0x55
        path.write_bytes(content)
