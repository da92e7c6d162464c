"""Several inputs as one: files, folders, patterns, addresses and standard input, in their order.

All of them are looked at before the first one is read, so that a wrong name is not found after hours. With several
inputs, paths of a folder's files begin with the folder's name: two mirrors may both have an `index.html`, and of
`mirror/*` the folders are hosts. An input that cannot be read when its turn comes is a bad record, and the next one is
read: it was there, and is gone, or nobody may read it.
"""

import fnmatch
import glob
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.addresses import AddressUnreachableError, is_address, on_this_machine
from dedup_service.runtime.readers.open import InputKind, InputOptions, InputSource, found_at, kind_of, open_source
from dedup_service.runtime.readers.record import BrokenInput, Mark, NamedRecord, Record
from dedup_service.runtime.readers.remote import matching


def expanded(names: Sequence[str]) -> list[str]:
    """Return the inputs that names and patterns stand for, in order; those of a pattern by name.

    A name of which there is a file is no pattern; `file://…` becomes a path. Raises ConfigurationError for a pattern
    that nothing matches, and for an input that would be read twice: named twice, or a folder inside another one.
    """
    found: list[str] = []
    for name in names:
        matches = _matches(on_this_machine(name))
        if not matches:
            raise ConfigurationError(_no_match(on_this_machine(name)))
        found += matches
    places: set[str] = set()
    for name in found:
        place = name if name == "-" or is_address(name) else str(Path(name).resolve())
        if place in places:
            raise ConfigurationError(f"the input {name!r} is named twice: leave one out")
        places.add(place)
    _check_apart([name for name in found if _is_local_folder(name)])
    return found


def pattern_of(names: Sequence[str], path: str) -> str | None:
    """Return which of the names stands for a file at `path` besides others, once it is there; None if none does.

    That is a pattern, or a folder `….parquet` with the files of a table.
    """
    place = Path(path).absolute()
    places = [place, place.parent.resolve() / place.name]
    if ".parquet" == place.suffix == place.parent.suffix:
        places += [one.parent for one in places]
    for name in names:
        here = on_this_machine(name)
        if here == "-" or is_address(here):
            continue
        if not _is_pattern(here):
            found = Path(here).resolve() in places[2:]
        else:
            parts = Path(here).absolute().parts
            known = next(at for at, part in enumerate(parts) if glob.has_magic(part))
            above = Path(*parts[:known])
            patterns = [(*folder.parts, *parts[known:]) for folder in (above, above.resolve())]
            found = any(_stands_for(pattern, one.parts) for pattern in patterns for one in places)
        if found:
            return name
    return None


def _stands_for(pattern: Sequence[str], place: Sequence[str]) -> bool:
    """Return whether the parts of a pattern stand for those of a path, as in `glob.glob`."""
    if not pattern or not place:
        return not place and all(part == "**" for part in pattern)
    first, is_hidden = pattern[0], place[0].startswith(".")
    if first == "**":
        return _stands_for(pattern[1:], place) or (not is_hidden and _stands_for(pattern, place[1:]))
    fits = fnmatch.fnmatchcase(place[0], first) and (first.startswith(".") or not is_hidden)
    return (fits or place[0] == first) and _stands_for(pattern[1:], place[1:])


def _is_pattern(name: str) -> bool:
    """Return whether the name of a path is a pattern: a name of which there is a file is none."""
    return glob.has_magic(name) and not Path(name).exists()


def _matches(name: str) -> list[str]:
    """Return what a name or a pattern stands for; the files of a folder `….parquet`, as Spark writes it."""
    if name == "-" or name.startswith(("http://", "https://")) or not glob.has_magic(name):
        found = [name]
    elif is_address(name):
        found = matching(name)
    elif not _is_pattern(name):
        found = [name]
    else:
        found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - a whole pattern, absolute or not
    return [part for one in found for part in _parts(one)]


def _parts(name: str) -> list[str]:
    """Return the Parquet files in a folder of them; `name` itself for anything else."""
    if not name.rstrip("/").endswith(".parquet"):
        return [name]
    if not is_address(name):
        folder = Path(name)
        return sorted(str(path) for path in folder.glob("*.parquet")) if folder.is_dir() else [name]
    return matching(f"{name.rstrip('/')}/*.parquet") or [name]


def _no_match(name: str) -> str:
    """Return what to say of a name or a pattern that stands for nothing."""
    if _is_local_folder(name):
        below = str(Path(name) / "**" / "*.parquet")
        return f"the folder {name!r} has no files *.parquet: name another one, or a pattern for those below, {below!r}"
    if not is_address(name) and glob.glob(name, recursive=True):  # noqa: PTH207 - as in `_matches`
        return f"no file or folder that {name!r} matches has files *.parquet: name others"
    return f"no file or folder matches {name!r}"


def _is_local_folder(name: str) -> bool:
    return name != "-" and not is_address(name) and Path(name).is_dir()


def _check_apart(folders: Sequence[str]) -> None:
    """Raise ConfigurationError if a folder is inside another one, as of the pattern `mirror/**`."""
    names = {Path(name).resolve(): name for name in folders}
    for path, name in names.items():
        above = next((names[parent] for parent in path.parents if parent in names), None)
        if above is not None:
            raise ConfigurationError(f"the folder {name!r} is inside the input {above!r}: leave one out")


def folders_by_name(names: Sequence[str]) -> dict[str, str]:
    """Return the folders among several inputs by their own names, with which the paths of their files begin.

    Raises ConfigurationError if two have the same name, or two HTML files, whose names are their paths.
    """
    named: dict[InputKind, dict[str, str]] = {InputKind.FOLDER: {}, InputKind.HTML: {}}
    for place in names:
        kind = kind_of(place)
        name = PurePosixPath(place.rstrip("/")).name if is_address(place) else Path(place).resolve().name
        other = named.get(kind, {}).setdefault(name, place)
        if kind in named and other != place:
            what, remedy = (
                ("folders", "with which the paths of their files would begin: filter them one after the other")
                if kind is InputKind.FOLDER
                else ("pages", "which would be their paths: name the folder that they are in")
            )
            raise ConfigurationError(f"the {what} {other!r} and {place!r} have the same name, {remedy}")
    return named[InputKind.FOLDER]


@contextmanager
def open_sources(
    names: Sequence[str],
    options: InputOptions | None = None,
    *,
    first: int = 0,
    after: Mapping[str, Mark] | None = None,
) -> Iterator[InputSource]:
    """Open inputs, which are read one after the other; see `open_source`. names: as `expanded` returns them.

    first: place of the input to begin with. after: begin an input behind a record, by its name.
    Raises ConfigurationError if one of them cannot be opened.
    """
    after = after or {}
    if len(names) == 1:
        with open_source(names[0], options, after=after.get(names[0])) as source:
            yield source
        return
    kinds = {kind_of(name) for name in names}
    tops = {path: f"{name}/" for name, path in folders_by_name(names).items()}
    several = _Several(names, tops, options, first)
    with closing(several.records(after)) as records:
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        yield InputSource(f"{len(names)} inputs", kind, records, several.size_bytes, several.read_bytes)


class _Several:
    """Several inputs. first: the place of the one to begin with. size_bytes: of all; None if one is not known."""

    def __init__(self, names: Sequence[str], tops: Mapping[str, str], options: InputOptions | None, first: int) -> None:
        self._names, self._tops, self._options, self._at = names, tops, options, first
        self._sizes = [None if name == "-" else found_at(name).size_bytes for name in names]
        self.size_bytes = None if None in self._sizes else sum(size or 0 for size in self._sizes) or None
        self._current: InputSource | None = None

    def read_bytes(self) -> int:
        """Return the bytes of the inputs before the current one, and those that were read of it."""
        current = 0 if self._current is None else self._current.read_bytes()
        return sum(size or 0 for size in self._sizes[: self._at]) + current

    def records(self, after: Mapping[str, Mark]) -> Generator[Record | None, None, None]:
        """Yield the records of all inputs from the first one on, of each those behind its mark."""
        for at in range(self._at, len(self._names)):
            name, self._at = self._names[at], at
            begin, last = after.get(name), after.get(name, Mark(0, 0))
            try:
                with open_source(name, self._options, above=self._tops.get(name, ""), after=begin) as source:
                    self._current = source
                    for record in source.records:
                        if record is not None:
                            last = record.mark
                        yield None if record is None else NamedRecord(source.name, record)
            except (OSError, ConfigurationError, AddressUnreachableError) as error:  # it was there before
                self._current, self._at = None, at + 1
                problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
                number = last.number + 1
                broken = BrokenInput(
                    f"record {number}",
                    f"the input cannot be read from here on: {problem}",
                    replace(last, number=number, last=True),
                )
                yield NamedRecord(name, broken)
            self._current, self._at = None, at + 1
