"""Several inputs as one: files, folders, patterns and standard input, in their order.

All of them are looked at before the first one is read, so that a wrong name is not found after hours. With several
inputs, paths of a folder's files begin with the folder's name: two mirrors may both have an `index.html`, and of
`mirror/*` the folders are hosts. An input that cannot be read when its turn comes is a bad record, and the next one is
read: it was there, and is gone, or nobody may read it.
"""

import glob
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.page import Page
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX
from dedup_service.runtime.readers.jsonlines import Wait
from dedup_service.runtime.readers.open import InputKind, InputSource, kind_of, open_source
from dedup_service.runtime.readers.record import Extract, NamedRecord, Record

__all__ = ["BrokenInput", "expanded", "folders_by_name", "open_sources"]


@dataclass(frozen=True, slots=True)
class BrokenInput:
    """Where one of several inputs became unreadable: one bad record in place of what is left of it."""

    number: int
    problem: str

    @property
    def place(self) -> str:
        """The number of the record that could not be read."""
        return f"record {self.number}"

    @property
    def raw(self) -> bytes:
        """Nothing: it could not be read."""
        return b""

    @property
    def identity(self) -> bytes:
        """The place: nothing else is known."""
        return self.place.encode()

    def page(self, extract: Extract) -> Page:  # noqa: ARG002 - the signature of every record
        """Raise RecordError: there is no page."""
        raise RecordError(f"the input cannot be read from here on: {self.problem}")

    def text_page(self) -> Page | None:
        """Raise RecordError: there is no page."""
        return self.unread()

    def unread(self) -> Page:
        """Raise RecordError: there is no page."""
        raise RecordError(f"the input cannot be read from here on: {self.problem}")


def expanded(names: Sequence[str]) -> list[str]:
    """Return the inputs that names and patterns stand for, in order; those of a pattern by name.

    A name of which there is a file is no pattern. Raises ConfigurationError for a pattern that nothing matches, and for
    an input that would be read twice: named twice, or a folder inside another one.
    """
    found: list[str] = []
    for name in names:
        if name == "-" or Path(name).exists() or not glob.has_magic(name):
            found.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - a whole pattern, absolute or not
        if not matches:
            raise ConfigurationError(f"no file or folder matches {name!r}")
        found += matches
    places: set[str] = set()
    for name in found:
        place = name if name == "-" else str(Path(name).resolve())
        if place in places:
            raise ConfigurationError(f"the input {name!r} is named twice: leave one out")
        places.add(place)
    _check_apart([name for name in found if name != "-" and Path(name).is_dir()])
    return found


def _check_apart(folders: Sequence[str]) -> None:
    """Raise ConfigurationError if a folder is inside another one, as of the pattern `mirror/**`."""
    names = {Path(name).resolve(): name for name in folders}
    for path, name in names.items():
        above = next((names[parent] for parent in path.parents if parent in names), None)
        if above is not None:
            raise ConfigurationError(f"the folder {name!r} is inside the input {above!r}: leave one out")


def folders_by_name(names: Sequence[str]) -> dict[str, Path]:
    """Return the folders among several inputs by their own names, with which the paths of their files begin.

    Raises ConfigurationError if two have the same name.
    """
    folders: dict[str, Path] = {}
    for path in (Path(name) for name in names if name != "-" and Path(name).is_dir()):
        name = path.resolve().name
        if name in folders:
            raise ConfigurationError(
                f"the folders {str(folders[name])!r} and {str(path)!r} have the same name, with which the paths of "
                "their files would begin: filter them one after the other, with one --state"
            )
        folders[name] = path
    return folders


@contextmanager
def open_sources(
    names: Sequence[str], *, wait: Wait | None = None, url_prefix: str = DEFAULT_PREFIX
) -> Iterator[InputSource]:
    """Open inputs, which are read one after the other; see `open_source`. names: as `expanded` returns them.

    Raises ConfigurationError if one of them cannot be opened.
    """
    if len(names) == 1:
        with open_source(names[0], wait=wait, url_prefix=url_prefix) as source:
            yield source
        return
    kinds = {kind_of(name) for name in names}
    tops = {str(path): f"{name}/" for name, path in folders_by_name(names).items()}
    with closing(_records(names, tops, wait, url_prefix)) as records:
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        yield InputSource(f"{len(names)} inputs", kind, records, _size_bytes(names))


def _records(
    names: Sequence[str], tops: Mapping[str, str], wait: Wait | None, url_prefix: str
) -> Generator[Record | None, None, None]:
    for name in names:
        count = 0
        try:
            with open_source(name, wait=wait, url_prefix=url_prefix, above=tops.get(str(Path(name)), "")) as source:
                for record in source.records:
                    yield None if record is None else NamedRecord(source.name, record)
                    count += record is not None
        except (OSError, ConfigurationError) as error:  # it was there when all were looked for
            problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
            yield NamedRecord(name, BrokenInput(count + 1, problem))


def _size_bytes(names: Sequence[str]) -> int | None:
    """Return the bytes of all inputs, None unless all are plain lines in files, whose records have as many bytes."""
    if any(name == "-" or name.endswith(".gz") or kind_of(name) is not InputKind.JSON_LINES for name in names):
        return None
    return sum(Path(name).stat().st_size for name in names) or None
