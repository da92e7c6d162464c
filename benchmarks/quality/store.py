"""Cache of computed values, keyed by a digest of everything that they depend on.

The key of a value has the code, the data and the options that it was computed with, so a stale value is
never found. An interrupted run continues where it stopped. Files are written atomically.
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

Value = TypeVar("Value")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORE = ROOT / "dedup_service" / "core"
NATIVE = ROOT / "dedup_service" / "native"
PREPARING = (
    "dedup_service.core.fingerprinter",
    "dedup_service.core.extraction",
    "dedup_service.core.evaluation.scoring",
)
"""Modules that prepare pages and score verdicts; the modules that they do not import decide."""

PREPARING_NATIVE = (
    *("characters.rs", "evidence.rs", "prepare.rs"),
    *("evidence/*.rs", "features/*.rs", "segmentation/*.rs", "stream/packed.rs", "stream/tokens.rs", "text/*.rs"),
)
"""The same of the crate."""


@dataclass(frozen=True, slots=True)
class Store:
    """Values in files of `folder`."""

    folder: Path

    def get(self, name: str, key: Iterable[object], make: Callable[[], Value]) -> Value:
        """Return the value `name` of `key`; compute and store it if it is missing."""
        path = self._path(name, key)
        if path.exists():
            value: Value = pickle.loads(path.read_bytes())
            return value
        value = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(pickle.dumps(value, protocol=5))
        temporary.replace(path)
        return value

    def has(self, name: str, key: Iterable[object]) -> bool:
        """Return whether the value is stored."""
        return self._path(name, key).exists()

    def _path(self, name: str, key: Iterable[object]) -> Path:
        return self.folder / f"{name}-{xxhash.xxh3_64_hexdigest(repr(list(key)).encode())}.pickle"


@cache
def digest_of_code(*, preparing: bool = False) -> str:
    """Return a digest of the core and its data. preparing: only of PREPARING and all that they import."""
    paths = modules_behind(PREPARING) if preparing else CORE.rglob("*.py")
    data = (path for path in (ROOT / "dedup_service" / "runtime" / "data").iterdir() if path.is_file())
    return digest_of_files(
        [*sorted(paths), *sorted(data), *native_files(PREPARING_NATIVE if preparing else ["**/*.rs"])]
    )


def native_files(patterns: Iterable[str]) -> list[Path]:
    """Return the tables of the crate, and those of its sources that a pattern names."""
    sources = (path for pattern in patterns for path in (NATIVE / "src").glob(pattern))
    return sorted([*(NATIVE / "tables").iterdir(), *sources])


def modules_behind(names: Iterable[str]) -> set[Path]:
    """Return the files of modules of this project and of all modules of it that they import."""
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
def digest_of_baselines() -> str:
    """Return a digest of the modules that give the compared packages their text, and that run them."""
    return digest_of_files([*native_files(["text/*.rs"]), HERE / "baseline_features.py", HERE / "shingles.py"])


def digest_of_modules(names: Iterable[str]) -> str:
    """Return a digest of modules of this package."""
    return digest_of_files(HERE / f"{name}.py" for name in names)


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return a digest of the names and bytes of files; FileNotFoundError if one is missing."""
    hasher = xxhash.xxh3_128()
    for path in paths:
        hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()
