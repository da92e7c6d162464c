"""Choose the reader of an input: by folder or file name extension; content that is surely of another format is refused.

Only gzip and zstd are recognised by their first bytes, whatever the name is.
"""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.readers.arrow_rows import require_pyarrow
from dedup_service.runtime.readers.columns import Columns
from dedup_service.runtime.readers.csv_rows import delimiter_of, read_csv, read_names
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX, SUFFIXES, read_file, read_folder
from dedup_service.runtime.readers.jsonlines import DAMAGE, read_json_lines
from dedup_service.runtime.readers.looks import HEAD_BYTES, JSON_LINES, refuse_other
from dedup_service.runtime.readers.packed import unpacked
from dedup_service.runtime.readers.parquet import read_parquet
from dedup_service.runtime.readers.pipe import Wait, is_pipe, opened_pipe
from dedup_service.runtime.readers.record import Mark, Record
from dedup_service.runtime.readers.remote import Found, look, name_of, on_disk, opened, read_objects
from dedup_service.runtime.readers.warc import read_warc

UNPACKERS = {".xz": "xz -dc", ".bz2": "bzip2 -dc", ".warc.zst": "zstd -dc", ".wet.zst": "zstd -dc"}
"""Compressions that are not read, and what unpacks them; their bytes would be so many bad lines."""

STANDARD_INPUT = "standard input"
"""How the input - is called in messages and records."""

WARC_ENDINGS = (".warc", ".warc.gz", ".wet", ".wet.gz")
CSV_ENDINGS = tuple(kind + packing for kind in (".csv", ".tsv") for packing in ("", ".gz", ".zst"))


class InputKind(StrEnum):
    """The kinds of input."""

    JSON_LINES = "JSON lines"
    WARC = "WARC"
    PARQUET = "Parquet"
    FOLDER = "folder of HTML"
    CSV = "CSV"
    HTML = "HTML file"


_LOOKS = {
    InputKind.JSON_LINES: (JSON_LINES,),
    InputKind.CSV: ("CSV", "TSV"),
    InputKind.WARC: ("a WARC file",),
    InputKind.PARQUET: ("Parquet",),
}
"""What the first bytes of an input of a kind may look like."""


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How inputs are read.

    wait: see `read_lines`. url_prefix: of the files in a folder. columns: other names of an input's columns or keys.
    whole: keep all columns of rows, for kept rows (`ParquetRow.origin`).
    """

    wait: Wait | None = None
    url_prefix: str = DEFAULT_PREFIX
    columns: Columns | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class InputSource:
    """An open input.

    kind: None for several inputs of different kinds. records: None means that the next record has not arrived yet.
    size_bytes: of the input as it lies there, packed or not; None if it is not known. read_bytes: how much of that
    has been read.
    """

    name: str
    kind: InputKind | None
    records: Iterator[Record | None]
    size_bytes: int | None = None
    read_bytes: Callable[[], int] = field(default=lambda: 0)


def kind_of(name: str) -> InputKind:
    """Return the kind of the input `name`: a path, an address, or - for standard input.

    Raises ConfigurationError if there is nothing to open, and for other packings; AddressUnreachableError.
    """
    if not name:  # which would be the folder that we are in
        raise ConfigurationError("an input has an empty name: give a path, or - for standard input")
    if name == "-":
        return InputKind.JSON_LINES
    plain = name_of(name)
    if not is_address(name) and Path(name).is_dir():
        return InputKind.FOLDER
    unpack = next((command for ending, command in UNPACKERS.items() if plain.endswith(ending)), None)
    if unpack is not None:
        raise ConfigurationError(f"{name!r} has to be unpacked first: {unpack} {name} | twinsieve filter -")
    if found_at(name).is_folder:
        return InputKind.FOLDER
    kind = _named_kind(plain)
    if kind is InputKind.PARQUET:
        require_pyarrow(name)
    if not is_address(name):
        _check_file(Path(name), kind)
    return kind


def _named_kind(name: str) -> InputKind:
    """Return the kind of file that a name is of."""
    if name.endswith(".parquet"):
        return InputKind.PARQUET
    if name.endswith(WARC_ENDINGS):
        return InputKind.WARC
    if name.lower().endswith(tuple(SUFFIXES)):
        return InputKind.HTML
    return InputKind.CSV if name.endswith(CSV_ENDINGS) else InputKind.JSON_LINES


def _check_file(path: Path, kind: InputKind) -> None:
    """Raise ConfigurationError for a file that looks like another kind, and for a pipe of what is no lines."""
    if path.is_file():
        refuse_other(_head_of(path), str(path), _LOOKS.get(kind, ()))
    elif kind not in {InputKind.JSON_LINES, InputKind.CSV}:
        raise ConfigurationError(f"{str(path)!r} is not a regular file: {kind} files are read from a disk")


def _head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; none of one that cannot be read, which its reader says."""
    held, size = list[bytes](), 0
    with suppress(OSError, *DAMAGE), path.open("rb") as file:
        for piece in filter(None, unpacked(iter((file.read(HEAD_BYTES),)))):
            held.append(piece)
            size += len(piece)
            if size >= HEAD_BYTES:
                break
    return b"".join(held)[:HEAD_BYTES]


def names_of_columns(name: str) -> tuple[str, ...]:
    """Return the names of the columns of a CSV file; none for one that cannot be read, or a pipe."""
    if not is_address(name) and not Path(name).is_file():
        return ()
    with _stream(name) as stream:
        return read_names(stream, delimiter_of(name_of(name)))


def found_at(name: str) -> Found:
    """Return what is at a path or an address; ConfigurationError if there is nothing; AddressUnreachableError."""
    if is_address(name):
        return look(name)
    try:
        status = Path(name).stat()
    except OSError:
        raise ConfigurationError(f"there is no file or folder {name!r}: give a path, or - for standard input") from None
    regular = Path(name).is_file()
    return Found(Path(name).is_dir(), status.st_size if regular else None, str(status.st_mtime_ns) if regular else "")


@contextmanager
def open_source(
    name: str, options: InputOptions | None = None, *, above: str = "", after: Mark | None = None
) -> Iterator[InputSource]:
    """Open `name`: a folder of HTML or one page of it, a WARC, WET, Parquet, CSV or TSV file, or lines of JSON.

    Lines and CSV may be packed. - is for lines on standard input.

    Each of them may be at an address, as s3://… or https://…. above: what the relative paths of a folder begin with.
    after: begin behind that record.
    ConfigurationError if there is nothing to open; AddressUnreachableError.
    """
    options = options or InputOptions()
    kind = kind_of(name)
    with ExitStack() as stack:
        if after is not None and after.last:
            yield InputSource(name, kind, iter(()))
        elif kind is InputKind.FOLDER:
            read = read_objects(name, options.url_prefix, above=above, after=after) if is_address(name) else None
            files = read or read_folder(Path(name), options.url_prefix, above=above, after=after)
            yield InputSource(name, kind, files)
        elif name == "-":
            check = partial(refuse_other, name=STANDARD_INPUT, kinds=_LOOKS[kind])
            lines = read_json_lines(_unbuffered_stdin(), options.wait, columns=options.columns, check=check)
            yield InputSource(STANDARD_INPUT, kind, lines)
        else:
            size = found_at(name).size_bytes or None
            yield _source_of_file(stack, name, kind, size, options, after)


def _source_of_file(
    stack: ExitStack, name: str, kind: InputKind, size: int | None, options: InputOptions, after: Mark | None
) -> InputSource:
    if kind is InputKind.WARC:
        meter = _Meter(after)
        archive = stack.enter_context(on_disk(name))
        return InputSource(name, kind, meter.follow(read_warc(archive, after)), size, lambda: meter.position)
    if kind is InputKind.PARQUET:
        meter = _Meter(after)
        columnar = stack.enter_context(opened(name)) if is_address(name) else name
        rows = read_parquet(columnar, name, options.columns, after=after, whole=options.whole, count=meter.count)
        return InputSource(name, kind, meter.follow(rows), size, lambda: meter.share_of(size or 0))
    stream = stack.enter_context(_stream(name))
    if kind is InputKind.HTML:
        return InputSource(
            name, kind, iter((read_file(stream, PurePosixPath(name_of(name)).name, options.url_prefix),))
        )
    check = partial(refuse_other, name=name, kinds=_LOOKS[kind])
    given: dict[str, Any] = {"columns": options.columns, "after": after, "check": check}
    records: Iterator[Record | None]
    if kind is InputKind.CSV:
        records = read_csv(stream, name, options.wait, delimiter=delimiter_of(name_of(name)), **given)
    else:
        records = read_json_lines(stream, options.wait, **given)
    if size is None and not stream.seekable():  # a pipe has no place
        return InputSource(name, kind, records)
    return InputSource(name, kind, records, size, stream.tell)


@contextmanager
def _stream(name: str) -> Iterator[BinaryIO]:
    """Open a file without a buffer, so that it can be polled. No FIFO is waited for here."""
    if is_address(name):
        with opened(name) as stream:
            yield stream
    elif is_pipe(name):
        with opened_pipe(name) as pipe:
            yield cast("BinaryIO", pipe)
    else:
        with Path(name).open("rb", buffering=0) as file:
            yield cast("BinaryIO", file)


class _Meter:
    """Follows the positions of records. position: of the last one that was read; total: of all, if it was counted."""

    def __init__(self, after: Mark | None) -> None:
        self.position = 0 if after is None else int(after.position)
        self.total = 0

    def count(self, total: int) -> None:
        """Take the number of positions."""
        self.total = total

    def share_of(self, size: int) -> int:
        """Return the share of `size` that has been read."""
        return size * self.position // self.total if self.total else 0

    def follow(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records."""
        for record in records:
            yield record
            self.position = int(record.mark.position)


def _unbuffered_stdin() -> BinaryIO:
    """Standard input as bytes, without Python's buffer, so that it can be polled."""
    raw = getattr(sys.stdin.buffer, "raw", None)
    return cast("BinaryIO", raw if isinstance(raw, io.FileIO) else sys.stdin.buffer)
