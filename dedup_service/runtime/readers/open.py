"""Choose the reader of an input: by folder or file name extension, never by content."""

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


UNPACKERS = {".zst": "zstd -dc", ".xz": "xz -dc", ".bz2": "bzip2 -dc"}
"""Compressions that are not read, and what unpacks them; their bytes would be so many bad lines."""


class InputKind(StrEnum):
    """The kinds of input."""

    JSON_LINES = "JSON lines"
    WARC = "WARC"
    FOLDER = "folder of HTML"


@dataclass(frozen=True, slots=True)
class InputSource:
    """An open input.

    kind: None for several inputs of different kinds. records: None means that the next record has not arrived yet.
    size_bytes: size of the input; None if it is not known, or if records are counted in other units.
    """

    name: str
    kind: InputKind | None
    records: Iterator[Record | None]
    size_bytes: int | None = None


def kind_of(name: str) -> InputKind:
    """Return the kind of the input `name`: a path, or - for standard input.

    Raises ConfigurationError if there is nothing to open, and for other packings.
    """
    if not name:  # which would be the folder that we are in
        raise ConfigurationError("an input has an empty name: give a path, or - for standard input")
    if name != "-" and Path(name).is_dir():
        return InputKind.FOLDER
    if name.endswith(tuple(UNPACKERS)):
        unpack = UNPACKERS[Path(name).suffix]
        raise ConfigurationError(f"{name!r} has to be unpacked first: {unpack} {name} | twinsieve filter -")
    if name != "-" and not Path(name).exists():
        raise ConfigurationError(f"there is no file or folder {name!r}: give a path, or - for standard input")
    if not name.endswith((".warc", ".warc.gz")):
        return InputKind.JSON_LINES
    if not Path(name).is_file():
        raise ConfigurationError(f"{name!r} is not a regular file: WARC files are read from a disk")
    return InputKind.WARC


@contextmanager
def open_source(
    name: str, *, wait: Wait | None = None, url_prefix: str = DEFAULT_PREFIX, above: str = ""
) -> Iterator[InputSource]:
    """Open `name`: a folder of HTML, a .warc or .warc.gz file, JSON lines (also .gz), or - for JSON lines on stdin.

    wait: see `read_lines`. url_prefix: of the files in a folder; above: what their relative paths begin with.
    ConfigurationError if there is nothing to open.
    """
    kind = kind_of(name)
    path = Path(name)
    if kind is InputKind.FOLDER:
        yield InputSource(name, kind, read_folder(path, url_prefix, above=above))
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
    """Standard input as bytes, without Python's buffer, so that it can be polled."""
    raw = getattr(sys.stdin.buffer, "raw", None)
    return cast("BinaryIO", raw if isinstance(raw, io.FileIO) else sys.stdin.buffer)
