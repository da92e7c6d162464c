"""What was worked out once, kept under the digest of all that it depends on.

A value's key names the code, the data and the options it was made with, so a stale one is never found; a run that was
broken off goes on where it stopped. Files appear whole or not at all.
"""

import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import xxhash

__all__ = ["ROOT", "Store", "digest_of_code", "digest_of_files", "digest_of_modules", "digest_of_peers"]

Value = TypeVar("Value")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORE = ROOT / "dedup_service" / "core"
DECIDING = frozenset(
    (
        *("alike", "candidates", "candidate_pairs", "changelog", "decision", "entries", "entry_arrays", "entry_chunk"),
        *("entry_rows", "entry_table", "judgements", "matching", "profiles", "replica", "rule", "scoring", "verdict"),
        *("facts", "guards", "calibration", "thresholds", "labelling"),
    )
)
"""Modules of the core that read prepared pages and make none."""


@dataclass(frozen=True, slots=True)
class Store:
    """Values in files of `folder`."""

    folder: Path

    def get(self, name: str, key: Iterable[object], make: Callable[[], Value]) -> Value:
        """Return the value `name` of `key`, made anew where it is not there."""
        path = self._path(name, key)
        if path.exists():
            value: Value = pickle.loads(path.read_bytes())
            return value
        value = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(pickle.dumps(value, protocol=5))
        beside.replace(path)
        return value

    def has(self, name: str, key: Iterable[object]) -> bool:
        """Whether the value is there."""
        return self._path(name, key).exists()

    def _path(self, name: str, key: Iterable[object]) -> Path:
        return self.folder / f"{name}-{xxhash.xxh3_64_hexdigest(repr(list(key)).encode())}.pickle"


def digest_of_code(*, preparing: bool = False) -> str:
    """Return a digest of the core; preparing: only of what prepares pages."""
    paths = sorted(CORE.rglob("*.py")) + sorted((ROOT / "dedup_service" / "runtime" / "data").iterdir())
    if preparing:
        paths = [path for path in paths if path.stem not in DECIDING and path.parent.name != "index"]
    return digest_of_files(paths)


def digest_of_peers() -> str:
    """Return a digest of what gives the compared packages their text, and of what they make of it."""
    ours = [CORE / "normalise.py", CORE / "reposts.py", CORE / "ngrams.py"]
    return digest_of_files([*ours, HERE / "peers.py", HERE / "shingles.py"])


def digest_of_modules(names: Iterable[str]) -> str:
    """Return a digest of modules of this package."""
    return digest_of_files(HERE / f"{name}.py" for name in names)


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return a digest of the names and bytes of files."""
    hasher = xxhash.xxh3_128()
    for path in paths:
        if path.is_file():
            hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()
