"""What people said of pairs, one line of JSON an answer, in a file that only ever holds whole lines.

An answer is on the disk before the next question is asked. The last one can be taken back, which cuts the file.
A line that a crash left half-written is cut off when the file is opened; any other line that is none is refused.
Invariant: one process at a time writes the file (`flock`).
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError

__all__ = ["Label", "LabelFile"]


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two ids and `dup`, `not` or anything between. at: when it was said, ISO 8601. kind: how the pair was chosen."""

    a: str
    b: str
    label: str
    kind: str | None = None
    at: str | None = None


_decoder = msgspec.json.Decoder(Label)


@dataclass(frozen=True, slots=True)
class _Place:
    label: Label
    start: int


class LabelFile:
    """The answers in the file at `path`, which is made where there is none.

    ConfigurationError for a file that cannot be read or written, or holds something else; StateError while another
    process writes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ConfigurationError(f"cannot write {str(path)!r}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._places = self._read()
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StateError(f"{path} is being written by another process: name another file, or wait") from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    @property
    def labels(self) -> list[Label]:
        """All answers in the file, in their order."""
        return [place.label for place in self._places]

    def append(self, label: Label) -> None:
        """Store an answer; on the disk when this returns."""
        start = os.lseek(self._descriptor, 0, os.SEEK_END)
        data = memoryview(msgspec.json.encode(label) + b"\n")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, start)
            raise
        self._places.append(_Place(label, start))

    def take_back(self) -> Label:
        """Take the last answer out of the file and return it; IndexError where there is none."""
        place = self._places.pop()
        os.ftruncate(self._descriptor, place.start)
        os.fsync(self._descriptor)
        return place.label

    def _read(self) -> list[_Place]:
        places, start = [], 0
        for number, line in enumerate(self._path.read_bytes().splitlines(keepends=True), 1):
            try:
                if line.strip():
                    places.append(_Place(_decoder.decode(line), start))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if line.endswith(b"\n"):
                    raise ConfigurationError(f"{self._path}, line {number}: not a label in JSON: {error}") from error
                os.ftruncate(self._descriptor, start)
                return places
            start += len(line)
        if start and not line.endswith(b"\n"):
            os.pwrite(self._descriptor, b"\n", start)
        return places
