"""Where kept pages go: as they were read, or as lines of JSON, or rows of CSV or Parquet.

Records of one kind are written as they were read: lines as lines, WARC records as a WARC file, HTML files in folders,
rows with all their columns. To a name that ends with `.jsonl`, `.csv`, `.tsv` or `.parquet`, pages of any other kind
are written with what was extracted of them, under the keys that `filter` reads.
"""

import ctypes
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.interfaces.cli.support.csv_tables import KeptCsv, is_csv
from dedup_service.interfaces.cli.support.outputs import OutputError, OutputFile, gzipped
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.interfaces.cli.support.record_outputs import RecordOutput, open_pages
from dedup_service.interfaces.cli.support.tables import KeptRows
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.readers.folder import open_regular
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK
from dedup_service.runtime.readers.open import InputKind
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.readers.remote import name_of, opened
from dedup_service.runtime.readers.several import folders_by_name
from dedup_service.runtime.readers.warc import GZIP, SEPARATOR

_LINES = (".jsonl", ".ndjson")


class KeptOutput(RecordOutput, Protocol):
    """Where kept pages go. due: what it lacks before its next record, None at its beginning (`KeptRecords`)."""

    due: bytes | None


class KeptRecords:
    """Kept records, one after the other in one file: lines of JSON, or WARC records.

    separator: what a record ends with unless it is compressed. packed: compress those that are not. keep, due: the
    bytes of an earlier run that stay, and its `due`.
    The records of one input are written as they were read. Between those of several, a separator that the last record
    of one lacks is added and a byte order mark is left out, and WARC records are compressed if those of another input
    are: else the file could not be read from there on.
    """

    def __init__(
        self, name: str, separator: bytes, *, packed: bool = False, keep: int = 0, due: bytes | None = None
    ) -> None:
        self._file = OutputFile(name, keep=keep, packed=separator == b"\n")
        self.sync, self.close = self._file.sync, self._file.close
        self._separator, self._packed = separator, packed
        self.due = due

    def write(self, kept: Sequence[DecidedRecord]) -> None:
        """Append the records' bytes."""
        self._file.write([part for one in kept for part in self._parts(one.record.raw)])

    def _parts(self, raw: bytes) -> tuple[bytes, bytes]:
        """Return what is written for a record: before it, and of it."""
        before = self.due
        missing = b"" if raw.startswith(GZIP) or raw.endswith(self._separator) else self._separator
        if self._packed and not raw.startswith(GZIP):
            raw, missing = gzipped(raw + missing), b""
        self.due = missing
        return (b"", raw) if before is None else (before, raw.removeprefix(BYTE_ORDER_MARK))


class KeptFolder:
    """Kept HTML files, under their relative paths.

    sources: the input folders by their names, with which the paths begin; the only one may have the name "".

    What was read is what is written; only of a page over the size limit, the rest is read from the file. No link is
    followed below the folders, in either of them.
    """

    due: bytes | None = None

    def __init__(self, sources: Mapping[str, str], target: Path) -> None:
        for source in (Path(name) for name in sources.values() if not is_address(name)):
            if target.resolve().is_relative_to(source.resolve()):
                raise ConfigurationError(
                    f"--kept {str(target)!r} is inside the input folder {str(source)!r}: name a folder outside it"
                )
        self._sources, self._target = sources, target
        target.mkdir(parents=True, exist_ok=True)

    def write(self, kept: Sequence[DecidedRecord]) -> None:
        """Write the records' files; a file that fails is removed."""
        for record in (one.record for one in kept):
            *folders, name = PurePosixPath(record.place).parts
            try:
                with _folder_in(self._target, folders, make=True) as folder:
                    self._write(record, name, folder)
            except OSError as error:
                raise OutputError(
                    f"{self._target / record.place}: {error.strerror}; make room, or remove a link that is there, and "
                    "run the same command again"
                ) from error

    def _write(self, record: Record, name: str, folder: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as copy:
                source, path = self._source(record)
                if len(record.raw) <= MAX_PAGE_SIZE:
                    copy.write(record.raw)
                elif is_address(source):
                    with opened(f"{source.rstrip('/')}/{path}") as whole:
                        shutil.copyfileobj(whole, copy)
                else:
                    _copy_whole(source, path, copy)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise

    def _source(self, record: Record) -> tuple[str, str]:
        """Return the input folder of a record, and its path below it."""
        top, below = ("", record.place) if "" in self._sources else record.place.split("/", 1)
        return self._sources[top], below

    def sync(self) -> None:
        """Bring the file system of the folder to its disk, where the system has a call for that."""
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "syncfs"):
            folder = os.open(self._target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if libc.syncfs(folder):
                    raise OSError(number := ctypes.get_errno(), os.strerror(number))
            finally:
                os.close(folder)

    def close(self) -> None:
        """Do nothing: no file is held open."""


def _copy_whole(source: str, path: str, copy: BinaryIO) -> None:
    *folders, name = PurePosixPath(path).parts
    with _folder_in(Path(source), folders, make=False) as folder, os.fdopen(open_regular(name, folder), "rb") as whole:
        shutil.copyfileobj(whole, copy)


@contextmanager
def _folder_in(top: Path, names: Sequence[str], *, make: bool) -> Iterator[int]:
    """Open a folder below `top`, which alone may be a link; make: create what is missing."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(top, flags)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            above, folder = folder, os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def open_kept(
    name: str, kind: InputKind | None, sources: Sequence[str], *, keep: int = 0, due: bytes | None = None
) -> KeptOutput:
    """Return the output for kept pages: a folder if the inputs are folders of HTML, otherwise a file.

    kind: of the inputs; None for several kinds, of which pages fit into lines and rows alone. sources: their names.
    keep, due: bytes of an earlier run that stay, and its `due`.
    """
    if name.endswith(".parquet"):
        return KeptRows(name, sources) if kind is InputKind.PARQUET else open_pages(name)
    is_lines = _lines(name)
    if kind is InputKind.CSV and not is_lines:
        return KeptCsv(name, sources, keep=keep)
    if is_csv(name) or (is_lines and kind is not InputKind.JSON_LINES):
        return open_pages(name, keep=keep)
    if kind is InputKind.JSON_LINES:
        return KeptRecords(name, b"\n", keep=keep, due=due)
    if kind is InputKind.WARC:
        packed = len(sources) > 1 and any(name_of(one).endswith(".gz") for one in sources)
        return KeptRecords(name, SEPARATOR, packed=packed, keep=keep, due=due)
    if kind is InputKind.FOLDER:
        return KeptFolder({"": sources[0]} if len(sources) == 1 else folders_by_name(sources), Path(name))
    what = "inputs of several kinds" if kind is None else f"pages of {kind}"
    raise ConfigurationError(f"--kept {name!r} takes no {what}: name a file that ends with .jsonl, .csv or .parquet")


def appends(name: str) -> bool:
    """Return whether a run that was interrupted goes on at the end of this output; a table is written anew.

    >>> appends("kept.jsonl.gz"), appends("kept.parquet")
    (True, False)
    """
    return not name.endswith(".parquet")


def _lines(name: str) -> bool:
    return name.removesuffix(".gz").removesuffix(".zst").endswith(_LINES)
