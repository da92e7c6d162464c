"""Files that a run writes: verdicts, kept pages, bad records.

Each file gets whole batches of records, or nothing of a batch.
Invariant: after a failed write (disk full), a regular file ends where the last whole batch ended, so no
line in it is incomplete.
"""

import base64
import fcntl
import gzip
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import click
import msgspec

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.runtime.readers import InputKind, NamedRecord, Record
from dedup_service.runtime.readers.folder import open_regular
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK
from dedup_service.runtime.readers.several import folders_by_name
from dedup_service.runtime.readers.warc import GZIP, SEPARATOR

__all__ = [
    "BadRecords",
    "KeptFolder",
    "KeptOutput",
    "KeptRecords",
    "OutputError",
    "OutputFile",
    "check_distinct",
    "check_outside",
    "open_kept",
]

MAX_MESSAGES = 100
"""Bad records reported on stderr. Further ones are only counted and written to the errors file."""

RAW_BYTES = 1000
"""Bytes of a bad record that the errors file quotes."""


class OutputError(TwinsieveError):
    """An output could not be written; it ends after a whole batch. Make room and run the command again."""

    retryable = True


class OutputFile:
    """A file, or - for standard output, written batch by batch without a buffer."""

    def __init__(self, name: str) -> None:
        self._name = "standard output" if name == "-" else name
        self._owned = name != "-"
        self._descriptor = _create(name) if self._owned else sys.stdout.fileno()
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._owned:
            os.close(self._descriptor)

    def write(self, chunks: Sequence[bytes]) -> None:
        """Write `chunks` as one batch.

        Raises OutputError if the batch cannot be written, BrokenPipeError if the reader has closed the pipe.
        """
        data = memoryview(b"".join(chunks))
        start = self._end() if self._regular else 0
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._regular:
                os.ftruncate(self._descriptor, start)
                os.lseek(self._descriptor, start, os.SEEK_SET)
            raise OutputError(
                f"{self._name}: {error.strerror}; the output ends after its last whole batch. "
                "Make room and run the same command again"
            ) from error

    def _end(self) -> int:
        """Return the offset of the next byte: of a file opened by the shell with >>, always its end."""
        appends = fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & os.O_APPEND
        return os.fstat(self._descriptor).st_size if appends else os.lseek(self._descriptor, 0, os.SEEK_CUR)


def _create(name: str) -> int:
    try:
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ConfigurationError(f"cannot write {name!r}: {error.strerror}") from error


class KeptOutput(Protocol):
    """Where kept records go."""

    def write(self, records: Sequence[Record]) -> None:
        """Write `records` as they were read."""
        ...

    def close(self) -> None:
        """Close the output."""
        ...


class KeptRecords:
    """Kept records, one after the other in one file: lines of JSON, or WARC records.

    separator: what a record ends with unless it is compressed. packed: compress those that are not.
    The records of one input are written as they were read. Between those of several, a separator that the last record
    of one lacks is added and a byte order mark is left out, and WARC records are compressed if those of another input
    are: else the file could not be read from there on.
    """

    def __init__(self, name: str, separator: bytes, *, packed: bool = False) -> None:
        self._file = OutputFile(name)
        self._separator, self._packed = separator, packed
        self._due: bytes | None = None  # before the next record; None before the first one

    def write(self, records: Sequence[Record]) -> None:
        """Append the records' bytes."""
        self._file.write([part for record in records for part in self._parts(record.raw)])

    def _parts(self, raw: bytes) -> tuple[bytes, bytes]:
        """Return what is written for a record: before it, and of it."""
        before = self._due
        missing = b"" if raw.startswith(GZIP) or raw.endswith(self._separator) else self._separator
        if self._packed and not raw.startswith(GZIP):
            raw, missing = gzip.compress(raw + missing), b""
        self._due = missing
        return (b"", raw) if before is None else (before, raw.removeprefix(BYTE_ORDER_MARK))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class KeptFolder:
    """Kept HTML files, under their relative paths.

    sources: the input folders by their names, with which the paths begin; the only one may have the name "".

    What was read is what is written; only of a page over the size limit, the rest is read from the file. No link is
    followed below the folders, in either of them.
    """

    def __init__(self, sources: Mapping[str, Path], target: Path) -> None:
        for source in sources.values():
            if target.resolve().is_relative_to(source.resolve()):
                raise ConfigurationError(
                    f"--kept {str(target)!r} is inside the input folder {str(source)!r}: name a folder outside it"
                )
        self._sources, self._target = sources, target
        target.mkdir(parents=True, exist_ok=True)

    def write(self, records: Sequence[Record]) -> None:
        """Write the records' files; a file that fails is removed."""
        for record in records:
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
                if len(record.raw) <= MAX_PAGE_SIZE:
                    copy.write(record.raw)
                else:
                    self._copy_whole(record, copy)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise

    def _copy_whole(self, record: Record, copy: BinaryIO) -> None:
        *folders, name = PurePosixPath(record.place).parts
        top = "" if "" in self._sources else folders.pop(0)
        with (
            _folder_in(self._sources[top], folders, make=False) as folder,
            os.fdopen(open_regular(name, folder), "rb") as whole,
        ):
            shutil.copyfileobj(whole, copy)

    def close(self) -> None:
        """Do nothing: no file is held open."""


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


def open_kept(name: str, kind: InputKind | None, sources: Sequence[str]) -> KeptOutput:
    """Return the output for kept records: a folder if the inputs are folders of HTML, otherwise a file.

    kind: of the inputs; ConfigurationError for None, several kinds. sources: their names.
    """
    if kind is None:
        raise ConfigurationError("--kept takes records as they were read: inputs of several kinds do not fit in one")
    if kind is InputKind.WARC:
        return KeptRecords(name, SEPARATOR, packed=len(sources) > 1 and any(one.endswith(".gz") for one in sources))
    if kind is InputKind.JSON_LINES:
        return KeptRecords(name, b"\n")
    return KeptFolder({"": Path(sources[0])} if len(sources) == 1 else folders_by_name(sources), Path(name))


class BadRecords:
    """Reports bad records on stderr, and writes them to the file `errors`, if any.

    name: of the input; records of several inputs say themselves where they are from.
    """

    def __init__(self, name: str, errors: str | None) -> None:
        self._name = name
        self._file = None if errors is None else OutputFile(errors)
        self.count = 0

    def report(self, records: Sequence[tuple[Record, str]]) -> None:
        """Report one batch of (record, problem)."""
        for record, problem in records:
            self.count += 1
            if self.count <= MAX_MESSAGES:
                click.echo(f"twinsieve: {self._source(record)}: {record.place}: {problem}", err=True)
            if self.count == MAX_MESSAGES:
                click.echo("twinsieve: further bad records are counted without a message", err=True)
        if self._file is not None:
            self._file.write([_error_line(self._source(record), record, problem) for record, problem in records])

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _source(self, record: Record) -> str:
        """Return the name of the input that a record is from."""
        return record.source if isinstance(record, NamedRecord) else self._name


def _error_line(name: str, record: Record, problem: str) -> bytes:
    values = {"source": name, "line": record.number, "place": record.place, "error": problem}
    return msgspec.json.encode(values | _raw(record.raw)) + b"\n"


def _raw(raw: bytes) -> dict[str, Any]:
    """Return the beginning of a record: as text if it is UTF-8, otherwise in base 64."""
    raw = raw.rstrip(b"\r\n")
    cut = len(raw) > RAW_BYTES
    try:
        text = raw.decode()[:RAW_BYTES]
    except UnicodeDecodeError:
        return {"raw": None, "raw_base64": base64.b64encode(raw[:RAW_BYTES]).decode(), "raw_cut": cut}
    return {"raw": text, "raw_base64": None, "raw_cut": cut}


def check_distinct(**names: str | None) -> None:
    """Raise ConfigurationError if two of the named files are the same, under whatever names; - is a file, too."""
    seen: dict[tuple[int, int] | str, str] = {}
    for option, name in names.items():
        if name is None:
            continue
        place = _place(name)
        if place in seen and name != os.devnull:
            raise ConfigurationError(f"{seen[place]} and {option} are the same file, {name!r}: name two files")
        seen[place] = option


def check_outside(state: str | None, **names: str | None) -> None:
    """Raise ConfigurationError if a file that is read or written is in the state folder, whose files it could be."""
    if state is None:
        return
    folder = Path(state).resolve()
    for option, name in names.items():
        if name is not None and name != "-" and Path(name).resolve().is_relative_to(folder):
            raise ConfigurationError(f"{option} {name!r} is in the state folder {state!r}: name a file outside it")


def _place(name: str) -> tuple[int, int] | str:
    """Return what two names of one file have in common: device and inode if it exists, which links share."""
    if name == "-":
        return name
    try:
        status = Path(name).stat()
    except OSError:
        return str(Path(name).resolve())
    return status.st_dev, status.st_ino
