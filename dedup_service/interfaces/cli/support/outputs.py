"""Files that a run writes: lines of verdicts, bad records; and checks of their names.

Each file gets whole batches of records, or nothing of a batch. A name that ends with `.gz` or `.zst` has them packed,
each batch alone, so that a file can be cut between them.
Invariant: after a failed write (disk full), a regular file ends where the last whole batch ended, so no
line in it is incomplete.
"""

import base64
import fcntl
import gzip
import os
import select
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import click
import msgspec
import zstandard

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.readers.open import CSV_ENDINGS
from dedup_service.runtime.readers.record import NamedRecord, Record
from dedup_service.runtime.readers.several import pattern_of

MAX_MESSAGES = 100
"""Bad records reported on stderr. Further ones are only counted and written to the errors file."""

RAW_BYTES = 1000
"""Bytes of a bad record that the errors file quotes."""


class OutputError(TwinsieveError):
    """An output could not be written; it ends after a whole batch. Make room and run the command again."""

    retryable = True


class OutputFile:
    """A file, or - for standard output, written batch by batch without a buffer.

    keep: bytes of an earlier run that stay; the file is cut behind them. packed: pack what is written as the name says;
    False if it is packed already. csv: it is CSV, which others may not be called.
    """

    def __init__(self, name: str, *, keep: int = 0, packed: bool = True, csv: bool = False) -> None:
        if name.endswith(CSV_ENDINGS) and not csv:
            raise ConfigurationError(f"{name!r} would have lines of JSON: give it a name that ends with .jsonl")
        self._pack = _packing(name) if packed else None
        self._name = "standard output" if name == "-" else name
        self._owned = name != "-"
        self._descriptor = _create(name, keep) if self._owned else sys.stdout.fileno()
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if not self._owned:
            return
        try:
            if self._pack is not None and self._regular and not os.fstat(self._descriptor).st_size:
                with suppress(OSError):  # a disk without room: nothing is missing in the file
                    os.write(self._descriptor, self._pack(b""))  # no bytes are no packed file: `gzip -t` refuses them
        finally:
            os.close(self._descriptor)

    def write(self, chunks: Sequence[bytes]) -> None:
        """Write `chunks` as one batch.

        Raises OutputError if the batch cannot be written, BrokenPipeError if the reader has closed the pipe.
        """
        joined = b"".join(chunks)
        data = memoryview(joined if self._pack is None or not joined else self._pack(joined))
        start = self._end() if self._regular else 0
        try:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:  # another process has set this pipe so, and its reader is slow
                    select.select([], [self._descriptor], [])
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

    def sync(self) -> None:
        """Bring what was written to the disk, if this is a file."""
        if self._regular:
            os.fsync(self._descriptor)

    def _end(self) -> int:
        """Return the offset of the next byte: of a file opened by the shell with >>, always its end."""
        appends = fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & os.O_APPEND
        return os.fstat(self._descriptor).st_size if appends else os.lseek(self._descriptor, 0, os.SEEK_CUR)


def gzipped(content: bytes) -> bytes:
    """Return a gzip member without a time: runs that are repeated write the same bytes."""
    return gzip.compress(content, mtime=0)


def _packing(name: str) -> Callable[[bytes], bytes] | None:
    """Return what packs the content of a file of this name."""
    if name.endswith(".gz"):
        return gzipped
    if name.endswith(".zst"):
        return zstandard.ZstdCompressor(write_checksum=True).compress
    return None


def _create(name: str, keep: int) -> int:
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | (0 if keep else os.O_TRUNC) | os.O_CLOEXEC, 0o666)
        if keep:
            os.ftruncate(descriptor, keep)
            os.lseek(descriptor, keep, os.SEEK_SET)
    except OSError as error:
        raise ConfigurationError(f"cannot write {name!r}: {error.strerror}") from error
    return descriptor


class BadRecords:
    """Reports bad records on stderr, and writes them to the file `errors`, if any.

    name: of the input; records of several inputs say themselves where they are from. keep: as of `OutputFile`.
    """

    def __init__(self, name: str, errors: str | None, *, keep: int = 0) -> None:
        self._name = name
        self._file = None if errors is None else OutputFile(errors, keep=keep)
        self.count = 0

    def report(self, records: Sequence[tuple[Record, str]]) -> None:
        """Report one batch of (record, problem)."""
        for record, problem in records:
            self.count += 1
            if self.count <= MAX_MESSAGES:
                message = terminal_safe(f"{self._source(record)}: {record.place}: {problem}")
                click.echo(f"twinsieve: {message}", err=True)
            if self.count == MAX_MESSAGES:
                click.echo("twinsieve: further bad records are counted without a message", err=True)
        if self._file is not None:
            self._file.write([_error_line(self._source(record), record, problem) for record, problem in records])

    def sync(self) -> None:
        """Bring what was written to the disk."""
        if self._file is not None:
            self._file.sync()

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


def check_unmatched(sources: Sequence[str], **names: str | None) -> None:
    """Raise ConfigurationError if a pattern among the inputs stands for a file that is written.

    The first run would work, and the next one would read what it wrote. The file cannot be left out of the pattern: it
    may be an input of the user's that is named by mistake.
    """
    for option, name in names.items():
        pattern = None if name is None or name == "-" else pattern_of(sources, name)
        if pattern is not None:
            raise ConfigurationError(
                f"{option} {name!r} is among the files that {pattern!r} stands for, so it would be read as an input, "
                "now or in the next run: write it to another folder, or give a pattern that leaves it out"
            )


def check_local(**names: str | None) -> None:
    """Raise ConfigurationError if a file that is written has an address for a name."""
    for option, name in names.items():
        if name is not None and is_address(name):
            raise ConfigurationError(f"{option} {name!r} is an address: name a file on this machine, and copy it there")


def check_writable(**names: str | None) -> None:
    """Raise ConfigurationError if a file cannot be written: before any of them is opened, which empties it."""
    for option, name in names.items():
        if name is None or name == "-":
            continue
        try:
            asked, why = _unwritable(Path(name))
        except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
            asked, why = Path(name), getattr(error, "strerror", None) or str(error)
        if why:
            raise ConfigurationError(f"cannot write {option} {name!r}: {asked}: {why}")


def _unwritable(path: Path) -> tuple[Path, str]:
    """Return why a file cannot be written, "" if it can, and the file or folder that is in the way."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()  # raises the other errors, as of a name too long, which the questions below hide since Python 3.14
    if path.is_dir():
        return path, "is a folder"
    if path.exists():  # also a pipe behind a link, as /dev/stdout
        return path, "" if os.access(path, os.W_OK) else "no permission to write"
    folder = path.resolve().parent  # of a link to a file that is not there yet, that of the file
    if not folder.is_dir():
        return folder, "there is no such folder"
    return folder, "" if os.access(folder, os.W_OK | os.X_OK) else "no permission to write"


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
