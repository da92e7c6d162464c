"""Which reader an input needs: said by what it is, a folder or a file's ending, never guessed from content."""

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX, read_folder
from dedup_service.runtime.readers.jsonlines import Wait, read_json_lines
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.readers.warc import read_warc

__all__ = ["InputKind", "InputSource", "kind_of", "open_source"]


class InputKind(StrEnum):
    """What can be read."""

    JSON_LINES = "JSON lines"
    WARC = "WARC"
    FOLDER = "folder of HTML"


@dataclass(frozen=True, slots=True)
class InputSource:
    """An open input.

    records: None stands for "the next record has not arrived yet".
    size_bytes: of the input where that is known and `position` counts in it, else None.
    """

    name: str
    kind: InputKind
    records: Iterator[Record | None]
    size_bytes: int | None = None


def kind_of(name: str) -> InputKind:
    """Return what `name` (a path, or - for standard input) holds."""
    if name != "-" and Path(name).is_dir():
        return InputKind.FOLDER
    return InputKind.WARC if name.endswith((".warc", ".warc.gz")) else InputKind.JSON_LINES


@contextmanager
def open_source(name: str, *, wait: Wait | None = None, url_prefix: str = DEFAULT_PREFIX) -> Iterator[InputSource]:
    """Open `name`: a folder of HTML, a .warc or .warc.gz file, JSON lines (.gz too), or - for lines on stdin.

    wait: see `readers.lines`. ConfigurationError where there is nothing to open.
    """
    kind = kind_of(name)
    path = Path(name)
    if name != "-" and not path.exists():
        raise ConfigurationError(f"there is no file or folder {name!r}: name one, or - for standard input")
    if kind is InputKind.FOLDER:
        yield InputSource(name, kind, read_folder(path, url_prefix))
    elif kind is InputKind.WARC:
        yield InputSource(name, kind, read_warc(path))
    elif name == "-":
        yield InputSource("standard input", kind, read_json_lines(_unbuffered_stdin(), wait))
    elif name.endswith(".gz"):
        with gzip.open(path, "rb") as unpacked:
            yield InputSource(name, kind, read_json_lines(cast("BinaryIO", unpacked)))
    else:
        with path.open("rb", buffering=0) as stream:
            yield InputSource(name, kind, read_json_lines(cast("BinaryIO", stream), wait), path.stat().st_size or None)


def _unbuffered_stdin() -> BinaryIO:
    """Standard input as bytes, read past Python's buffer so that waiting input can be polled for."""
    raw = getattr(sys.stdin.buffer, "raw", None)
    return cast("BinaryIO", raw if isinstance(raw, io.FileIO) else sys.stdin.buffer)
