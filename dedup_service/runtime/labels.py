"""Labels that people gave to pairs: a file with one line of JSON for each.

A label is on the disk before the next question is asked. The last label can be taken back, which truncates the file. A
line that a crash left incomplete is removed when the file is opened; any other line that is not a label is refused.
Invariant: one process at a time writes the file (`flock`), and the file holds complete lines only.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two ids with `dup`, `not` or another label. kind: how the pair was chosen; at: time of the answer, ISO 8601."""

    a: str
    b: str
    label: str
    kind: str | None = None
    at: str | None = None


_decoder = msgspec.json.Decoder(Label)


@dataclass(frozen=True, slots=True)
class _StoredLabel:
    """A label and the offset of its line in the file."""

    label: Label
    start: int


class LabelFile:
    """The labels in the file at `path`, which is created if it is missing.

    ConfigurationError if the file cannot be read or written, or holds something else; StateError while another process
    writes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ConfigurationError(f"cannot write {str(path)!r}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._stored = self._read()
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StateError(f"{path} is being written by another process: give another file, or wait") from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @property
    def labels(self) -> list[Label]:
        """All labels in the file, in their order."""
        return [stored.label for stored in self._stored]

    def append(self, label: Label) -> None:
        """Append a label; it is on the disk when this returns."""
        start = os.lseek(self._descriptor, 0, os.SEEK_END)
        data = memoryview(msgspec.json.encode(label) + b"\n")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, start)
            raise
        self._stored.append(_StoredLabel(label, start))

    def take_back(self) -> Label:
        """Remove the last label from the file and return it; IndexError if there is none."""
        last = self._stored.pop()
        os.ftruncate(self._descriptor, last.start)
        os.fsync(self._descriptor)
        return last.label

    def _read(self) -> list[_StoredLabel]:
        labels, start = [], 0
        for number, line in enumerate(self._path.read_bytes().splitlines(keepends=True), 1):
            try:
                if line.strip():
                    labels.append(_StoredLabel(_decoder.decode(line), start))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if line.endswith(b"\n"):
                    raise ConfigurationError(f"{self._path}, line {number}: not a label in JSON: {error}") from error
                os.ftruncate(self._descriptor, start)
                return labels
            start += len(line)
        if start and not line.endswith(b"\n"):
            os.pwrite(self._descriptor, b"\n", start)
        return labels
