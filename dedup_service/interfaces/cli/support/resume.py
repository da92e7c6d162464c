"""How far a run over files came, so that the same command goes on there after an interruption.

A run with a state folder notes it in `progress.json` there about once a second, once the outputs are on the disk: the
last record whose batch was decided and written, the sizes of the outputs, and the counts of the summary. The same
command cuts the outputs back to these sizes and reads on behind that record. What was decided after the note is in the
state, so it gets the same verdicts again.

It begins with the first record, as if there were no note, if anything is different: the inputs, their sizes or times of
change, an option, what the outputs have, or a journal that lacks what it had, as an older copy does. An input of which
no change could be seen, as of a pipe, is read again; of a folder, the name counts. A run that reached its end removes
the note, and so does one of another command.

A record is the same delivery as one before, with the verdict that it had, if it is at the same place of the same
input (`Deliveries`). Anywhere else, as in the file of the next day, it is a further visit of its page.
"""

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
import xxhash

from dedup_service.core.errors import TwinsieveError
from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.embedded.folder import JOURNAL_FILE
from dedup_service.runtime.embedded.state_info import has_mark, journal_mark
from dedup_service.runtime.readers.open import STANDARD_INPUT, found_at
from dedup_service.runtime.readers.record import Mark, NamedRecord, Record

NOTE_FILE = "progress.json"
RUN_FILE = "run.json"
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


class Deliveries:
    """What identifies the deliveries of one run. folder: its state folder, if any; command: what the run is asked.

    An input is the same as in an earlier run if its path, size and time of change are. Of standard input, pipes and
    folders no change can be seen: they are the same if the run that read them was interrupted and this is the same
    command, and so are files that have changed since. `run.json` says what such a run has read.
    """

    def __init__(self, folder: Path | None, names: Sequence[str], command: str) -> None:
        self._path = None if folder is None else folder / RUN_FILE
        self._run = self._interrupted(command) or _Run(command, [_input_of(name) for name in names])
        self._inputs = dict(zip(names, map(str.encode, self._run.inputs), strict=True))
        self._alone = self._run.inputs[0].encode()

    def _interrupted(self, command: str) -> "_Run | None":
        try:
            found = None if self._path is None else msgspec.json.decode(self._path.read_bytes(), type=_Run)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found is not None and found.command == command else None

    def begin(self) -> None:
        """Write down what the run reads."""
        if self._path is not None:
            _write(self._path, msgspec.json.encode(self._run))

    def of(self, record: Record) -> bytes:
        """Return what identifies the delivery of a record."""
        read = self._alone
        if isinstance(record, NamedRecord):
            read = self._inputs["-" if record.source == STANDARD_INPUT else record.source]
        return b"\0".join((read, record.place.encode("utf-8", "surrogateescape"), record.identity))

    def end(self) -> None:
        """Remove what `begin` wrote: the run has reached its end."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class _Run(msgspec.Struct, frozen=True):
    """A run that has begun. inputs: what tells each from others, in the order of the command."""

    command: str
    inputs: list[str]


def _input_of(name: str) -> str:
    """Return what tells an input from others: where it is, its size and version; of a pipe or folder, by chance."""
    seen = None if name == "-" else _seen(name)
    place = name if is_address(name) else str(Path(name).resolve())
    if seen is None or not seen[1]:
        return uuid.uuid4().hex
    return xxhash.xxh3_128_hexdigest(f"{place} {seen[0]} {seen[1]}".encode("utf-8", "surrogateescape"))


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
        self.folder = folder
        self._path = None if folder is None or not notable or "-" in names else folder / NOTE_FILE
        self._names, self._outputs = names, dict(outputs)
        self.command = xxhash.xxh3_128_hexdigest(
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
        if progress.command != self.command or not len(progress.seen) == progress.at + 1 <= len(self._names):
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
        if self.folder is not None:
            (self.folder / NOTE_FILE).unlink(missing_ok=True)

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
            self.command,
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
