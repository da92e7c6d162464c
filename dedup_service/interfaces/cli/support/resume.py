"""How far a run over files came, so that the same command goes on there after an interruption.

A run with a state folder notes it in `progress.json` there about once a second, once the outputs are on the disk: the
last record whose batch was decided and written, the sizes of the outputs, and the counts of the summary. The same
command cuts the outputs back to these sizes and reads on behind that record. What was decided after the note is in the
state, so it gets the same verdicts again.

It begins with the first record, as if there were no note, if anything is different: the inputs, their sizes or times of
change, an option, or outputs that are shorter than they were. A run that reached its end removes the note.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import xxhash

from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.readers import Mark, NamedRecord, Record
from dedup_service.runtime.readers.open import found_at

__all__ = ["Progress", "ProgressNotes"]

NOTE_FILE = "progress.json"
EVERY_S = 1.0


class Progress(msgspec.Struct, frozen=True):
    """A note. at: place of the current input among those of the command. sizes: of the outputs, by their options.

    command: what the run was asked. seen: size and version of the inputs up to the current one. due: what the file of
    kept records lacks before its next record.
    """

    command: str
    at: int
    number: int
    position: int | str
    seen: list[tuple[int | None, str]]
    sizes: dict[str, int]
    summary: dict[str, Any]
    due: bytes | None = None

    @property
    def mark(self) -> Mark:
        """Where reading goes on."""
        return Mark(self.number, self.position)


class ProgressNotes:
    """The note of one run. folder: its state folder; None notes nothing.

    command: what the run is asked, in any values; another command does not go on from its notes.
    outputs: files that are appended to, and a folder of files, by their options. They are on the disk before a note is.
    """

    def __init__(
        self, folder: Path | None, names: Sequence[str], command: Mapping[str, Any], outputs: Mapping[str, str]
    ) -> None:
        usable = folder is not None and "-" not in names
        self._path = folder / NOTE_FILE if folder is not None and usable else None
        self._names, self._outputs = names, dict(outputs)
        self._command = xxhash.xxh3_128_hexdigest(
            repr((list(names), sorted(command.items()), sorted(outputs.items()))).encode()
        )
        self._seen: list[tuple[int | None, str]] = []
        self._noted = time.monotonic()
        self._reached: tuple[Record, dict[str, int], dict[str, Any], bytes | None] | None = None

    def found(self) -> Progress | None:
        """Return the note of the same command, if what it says is still so; say on stderr what happens."""
        if self._path is None or not self._path.exists():
            return None
        try:
            progress = msgspec.json.decode(self._path.read_bytes(), type=Progress)
        except (OSError, msgspec.DecodeError):
            return None
        if progress.command != self._command:
            return None
        problem = self._changed(progress)
        name, where = self._names[progress.at], f"record {progress.number:,}"
        if problem is not None:
            click.echo(f"twinsieve: {problem} since the run that was interrupted: all is read again", err=True)
            return None
        click.echo(f"twinsieve: going on behind {where} of {name}, where a run was interrupted", err=True)
        self._seen = list(progress.seen)
        return progress

    def begin(self) -> None:
        """Remove an old note: the outputs begin anew."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def reached(self, record: Record, summary: Summary, due: bytes | None, sync: Callable[[], None]) -> None:
        """Take note that all is decided and written up to `record`; write that down if the last time is long ago.

        sync: brings the outputs to the disk.
        """
        if self._path is None:
            return
        files = ((option, Path(name)) for option, name in self._outputs.items())
        sizes = {option: path.stat().st_size for option, path in files if path.is_file()}
        self._reached = record, sizes, summary.as_dict(), due
        if time.monotonic() - self._noted >= EVERY_S:
            self.note(sync)

    def note(self, sync: Callable[[], None]) -> None:
        """Write down how far the run came."""
        if self._path is None or self._reached is None:
            return
        record, sizes, summary, due = self._reached
        at = self._names.index(record.source) if isinstance(record, NamedRecord) else 0
        for name in self._names[len(self._seen) : at + 1]:
            found = found_at(name)
            self._seen.append((found.size_bytes, found.version))
        sync()
        mark = record.mark
        progress = Progress(self._command, at, mark.number, mark.position, self._seen, sizes, summary, due)
        _write(self._path, msgspec.json.encode(progress))
        self._noted = time.monotonic()

    def end(self) -> None:
        """Remove the note: the run has reached its end."""
        self.begin()

    def _changed(self, progress: Progress) -> str | None:
        """Return what is not as it was; None if the run can go on."""
        for name, seen in zip(self._names, progress.seen, strict=False):
            found = found_at(name)
            if (found.size_bytes, found.version) != seen:
                return f"{name} has changed"
        for option, name in self._outputs.items():
            size = progress.sizes.get(option)
            if size is not None and (not Path(name).is_file() or Path(name).stat().st_size < size):
                return f"{option} {name} has become shorter"
        return None


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, durably."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
