"""What was worked out once, kept under the digest of all that it depends on.

A value's key names the code, the data and the options it was made with, so a stale one is never found; a run that was
broken off goes on where it stopped. Files appear whole or not at all.
"""

import ast
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import xxhash

__all__ = ["ROOT", "Store", "digest_of_code", "digest_of_files", "digest_of_modules", "digest_of_peers"]

Value = TypeVar("Value")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORE = ROOT / "dedup_service" / "core"
PREPARING = (
    "dedup_service.core.fingerprinter",
    "dedup_service.core.extraction",
    "dedup_service.core.evaluation.scoring",
)
"""What prepares pages and scores verdicts, with all that it imports; the rest of the core decides."""


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


@cache
def digest_of_code(*, preparing: bool = False) -> str:
    """Return a digest of the core; preparing: only of PREPARING."""
    paths = modules_behind(PREPARING) if preparing else CORE.rglob("*.py")
    return digest_of_files(sorted(paths) + sorted((ROOT / "dedup_service" / "runtime" / "data").iterdir()))


def modules_behind(names: Iterable[str]) -> set[Path]:
    """Return the files of modules of this project and of all that they import of it."""
    found: set[Path] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        place = ROOT.joinpath(*name.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if path not in found and path.is_file():
            found.add(path)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    waiting += [node.module, *(f"{node.module}.{part.name}" for part in node.names)]
    return found


@cache
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
