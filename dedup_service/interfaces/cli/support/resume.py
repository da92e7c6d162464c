"""How far a run over files came, so that the same command goes on there after an interruption.

A run with a state folder notes it in `progress.json` there about once a second, once the outputs are on the disk: the
last record whose batch was decided and written, the sizes of the outputs, and the counts of the summary. The same
command cuts the outputs back to these sizes and reads on behind that record. What was decided after the note is in the
state, so it gets the same verdicts again.

It begins with the first record, as if there were no note, if anything is different: the inputs, their sizes or times of
change, an option, what the outputs have, or a journal that lacks what it had, as an older copy does. An input of which
no change could be seen, as of a pipe, is read again; of a folder, the name counts. A run that reached its end removes
the note, and so does one of another command.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
import xxhash

from dedup_service.core.errors import TwinsieveError
from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.embedded.folder import JOURNAL_FILE
from dedup_service.runtime.embedded.state_info import has_mark, journal_mark
from dedup_service.runtime.readers.open import found_at
from dedup_service.runtime.readers.record import Mark, NamedRecord, Record

NOTE_FILE = "progress.json"
EVERY_S = 1.0
END_BYTES = 4096
"""Of an output, compared: another file of this name has other ones."""

_Natural = Annotated[int, msgspec.Meta(ge=0)]


class _Counts(msgspec.Struct, frozen=True):
    """What a summary goes on with."""

    verdicts: dict[str, _Natural]
    guards: dict[str, _Natural]
    claim_refused: _Natural
    faults: _Natural
    bad_records: _Natural
    given_before: _Natural
    by_another_rule: _Natural


class Progress(msgspec.Struct, frozen=True):
    """A note. at: place of the current input among those of the command. sizes: of the outputs, by their options.

    command: what the run was asked. seen: size and version of the inputs up to the current one; None if no change of
    one could be seen. ends: what the outputs have at these sizes, see `_end_of`. due: what the file of kept records
    lacks before its next record. last: nothing comes behind the record in its input. journal: see `journal_mark`.
    """

    command: str
    at: _Natural
    number: _Natural
    position: _Natural | str
    seen: list[tuple[int | None, str] | None]
    sizes: dict[str, _Natural]
    ends: dict[str, str]
    summary: dict[str, Any]
    due: bytes | None = None
    last: bool = False
    journal: str = ""

    @property
    def mark(self) -> Mark:
        """Where reading goes on."""
        return Mark(self.number, self.position, self.last)


class ProgressNotes:
    """The note of one run. folder: its state folder; None notes nothing, and neither does a run that is not `notable`.

    command: what the run is asked, in any values; another command does not go on from its notes.
    outputs: files that are appended to, and a folder of files, by their options. They are on the disk before a note is.
    """

    def __init__(
        self,
        folder: Path | None,
        names: Sequence[str],
        command: Mapping[str, Any],
        outputs: Mapping[str, str],
        *,
        notable: bool = True,
    ) -> None:
        self._folder = folder
        self._path = None if folder is None or not notable or "-" in names else folder / NOTE_FILE
        self._names, self._outputs = names, dict(outputs)
        self._command = xxhash.xxh3_128_hexdigest(
            repr((list(names), sorted(command.items()), sorted(outputs.items()))).encode()
        )
        self._seen: list[tuple[int | None, str] | None] = []
        self._noted = time.monotonic()
        self._reached: tuple[Record, dict[str, int], dict[str, Any], bytes | None] | None = None

    def found(self) -> Progress | None:
        """Return the note of the same command, if what it says is still so; say on stderr what happens."""
        if self._path is None or not self._path.exists() or not (self._path.parent / JOURNAL_FILE).exists():
            return None
        try:
            progress = msgspec.json.decode(self._path.read_bytes(), type=Progress)
            msgspec.convert(progress.summary, _Counts)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if progress.command != self._command or not len(progress.seen) == progress.at + 1 <= len(self._names):
            return None
        problem = self._changed(progress, self._path.parent)
        name, where = self._names[progress.at], f"record {progress.number:,}"
        if problem is not None:
            click.echo(f"twinsieve: {problem} since the run that was interrupted: all is read again", err=True)
            return None
        click.echo(f"twinsieve: going on behind {where} of {name}, where a run was interrupted", err=True)
        self._seen = list(progress.seen)
        return progress

    def begin(self) -> None:
        """Remove an old note, also of another command, which may have written the same outputs: they begin anew."""
        if self._folder is not None:
            (self._folder / NOTE_FILE).unlink(missing_ok=True)

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
        self._seen += [_seen(name) for name in self._names[len(self._seen) : at + 1]]
        sync()
        ends = {option: _end_of(Path(name), sizes.get(option, 0)) for option, name in self._outputs.items()}
        mark = record.mark
        progress = Progress(
            self._command,
            at,
            mark.number,
            mark.position,
            self._seen,
            sizes,
            ends,
            summary,
            due,
            mark.last,
            journal_mark(self._path.parent),
        )
        _write(self._path, msgspec.json.encode(progress))
        self._noted = time.monotonic()

    def end(self) -> None:
        """Remove the note: the run has reached its end."""
        self.begin()

    def _changed(self, progress: Progress, folder: Path) -> str | None:
        """Return what is not as it was; None if the run can go on. folder: of the state."""
        if not has_mark(folder, progress.journal):
            return f"{folder / JOURNAL_FILE} is another one, or an older copy,"
        for name, seen in zip(self._names, progress.seen, strict=False):
            if seen is None or _seen(name) != seen:
                return f"{name} may have changed" if seen is None else f"{name} has changed"
        for option, name in self._outputs.items():
            size, end = progress.sizes.get(option, 0), progress.ends.get(option, "")
            if Path(name).is_file() and Path(name).stat().st_size < size:
                return f"{option} {name} has become shorter"
            if not end or _end_of(Path(name), size) != end:
                return f"{option} {name} has changed"
        return None


def _seen(name: str) -> tuple[int | None, str] | None:
    """Return size and version of an input; None if no change of it could be seen, as of a pipe or what is gone."""
    try:
        found = found_at(name)
    except TwinsieveError:
        return None
    return (found.size_bytes, found.version) if found.version or found.is_folder else None


def _end_of(path: Path, size: int) -> str:
    """Return what tells whether an output is still there; "" if nothing does.

    Of a file its end, of a folder which one it is, with or without files. Pipes have passed on what was written.
    """
    if str(path) == os.devnull:
        return os.devnull
    if path.is_dir():
        return f"{path.stat().st_ino} {any(path.iterdir())}"
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(size - END_BYTES, 0))
        return xxhash.xxh3_128_hexdigest(file.read(min(size, END_BYTES)))


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, durably."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
