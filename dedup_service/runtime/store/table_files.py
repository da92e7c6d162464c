"""Arrays on disk: a base for each, and changes since, so that a commit writes what changed.

A *base* is the bytes of an array and a checksum for each page of PAGE_BYTES. A *change file* has, for some arrays,
places and new contents: words that the caller recorded as it changed them (`WordChanges`), or pages whose checksum
differs from what was written last. An array is its base with the change files after it applied in order. Once they
exceed DUE_SHARE of the base, `due` names the array, and the caller writes a new base with `rebase`.

A base is copied piece by piece while the array goes on changing, so its pages are of different moments. That is no
harm: every change since the copying began is in a change file, as a new content of a place, and a content may be
written twice. (ARIES calls this a fuzzy checkpoint with physical redo: Mohan et al., TODS 17(1), 1992.) A new base
counts from the first commit after it is complete.

No array is copied as a whole, and what was written leaves the page cache, which evidence needs.
"""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.manifest import ChangeFile, Section, TableLabel

__all__ = ["DUE_SHARE", "PAGE_BYTES", "PreparedTables", "TableFiles", "WordChanges"]

PAGE_BYTES = 64 << 10
"""Bytes under one checksum, and the least that is written of an array whose words are not recorded."""

DUE_SHARE = 0.05
"""Changes in proportion to a base from which on a new base is due."""

_PIECE_PAGES = 64
_SYNC_BYTES = 64 << 20
_PLACES = 1 << 20
_AHEAD_BYTES = 32 << 20
_LEGAL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

Array = npt.NDArray[Any]
Sums = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class WordChanges:
    """Elements of an array that changed. places: uint64[m] in the flat array; words: dtype[m]; the last one counts."""

    places: npt.NDArray[np.uint64]
    words: Array


@dataclass(slots=True)
class _Base:
    """A base that was written. since: the last change file that it contains. sums: of its pages."""

    label: TableLabel
    sums: Sums


@dataclass(slots=True)
class PreparedTables:
    """What the next manifest says about tables. unsynced: a file that has to be made durable before."""

    tables: dict[str, TableLabel]
    changes: list[ChangeFile]
    sums: dict[str, Sums] = field(default_factory=dict)
    unsynced: Path | None = None


class TableFiles:
    """The tables in `folder`, as the manifest has them."""

    def __init__(self, folder: Path, tables: Mapping[str, TableLabel], changes: Iterable[ChangeFile]) -> None:
        self._folder = folder
        self.tables = {name: msgspec.structs.replace(label) for name, label in tables.items()}  # labels change
        self.changes = list(changes)
        self.written_bytes = 0
        self._number = max([change.number for change in self.changes] + [t.since for t in self.tables.values()] + [0])
        self._sums: dict[str, Sums] = {}
        self._complete: dict[str, _Base] = {}
        self._forgotten: set[str] = set()
        self._lock = threading.RLock()
        """Held while a base is completed and while a commit is prepared, so that they do not overlap."""
        self._bases = max([int(t.base.rsplit("-", 1)[1]) for t in self.tables.values()] + [0])

    def paths(self) -> set[Path]:
        """Return the paths of all files that the manifest names."""
        bases = {self._folder / table.base for table in self.tables.values()}
        return bases | {self._change_path(change.number) for change in self.changes}

    def due(self) -> list[str]:
        """Return the tables whose changes exceed DUE_SHARE of their base and that have no new base yet."""
        return [
            name
            for name, label in self.tables.items()
            if name not in self._complete and self._changed_bytes(name, label) > DUE_SHARE * label.base_bytes
        ]

    def rebase(self, name: str, array: Array, *, words: bool) -> Iterator[int]:
        """Write a new base of `array`, yielding the bytes of each piece; the array may change in between.

        words: whether its changes are recorded. Any thread may iterate, one base of a table at a time; the array
        stays where it is until the last piece. The base takes effect with the next commit.
        """
        if not _LEGAL_NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} is no name of a table: use up to 64 of a-z, 0-9 and _")
        with self._lock:
            since = self._number
            self._bases += 1
            path = self._folder / f"{name}.base-{self._bases}"
        raw = _raw(array)
        sums = np.zeros(-(-len(raw) // PAGE_BYTES), np.uint64)
        with translated_os_errors(path), path.open("wb", buffering=0) as file:
            yield from self._copy(file, raw, sums)
            file.write(sums.astype("<u8").tobytes())
            os.fsync(file.fileno())
            _drop_cache(file.fileno())
        with self._lock:
            if not words:
                since = self._number  # compared with this base from here on: earlier pages may be older than it
            label = TableLabel(list(array.shape), array.dtype.str, path.name, len(raw), _sum_of(sums), since, words)
            self._complete[name] = _Base(label, sums)

    def forget(self, name: str) -> None:
        """Give the table `name` a new base with the next commit, for example because its elements moved."""
        with self._lock:
            self._complete.pop(name, None)
            self._forgotten.add(name)

    def prepare(self, arrays: Mapping[str, Array], changes: Mapping[str, WordChanges]) -> PreparedTables:
        """Write what changed since the last commit; arrays without a base that fits get one.

        The arrays do not change meanwhile. changes: of the arrays whose words are recorded. The change file is not
        yet durable (`PreparedTables.unsynced`).
        """
        with self._lock:
            return self._prepare(arrays, changes)

    def _prepare(self, arrays: Mapping[str, Array], changes: Mapping[str, WordChanges]) -> PreparedTables:
        number = self._number + 1
        prepared = PreparedTables({}, list(self.changes))
        path = self._change_path(number)
        sections: list[Section] = []
        with translated_os_errors(path), path.open("wb", buffering=1 << 20) as file:
            for name, array in arrays.items():
                words = name in changes
                base = self._base_of(name, array, words=words)
                if base is None:
                    for _ in self.rebase(name, array, words=words):
                        pass
                    base = self._complete[name]
                    base.label.since = number
                elif words:
                    sections += _write_words(file, name, array, changes[name])
                else:
                    sections += _write_pages(file, name, array, base.sums)
                base.label.shape = list(array.shape)
                prepared.tables[name], prepared.sums[name] = base.label, base.sums
            size = file.tell()
        self.written_bytes += size
        if sections:
            prepared.changes.append(ChangeFile(number, size, sections))
            prepared.unsynced = path
        self._number = number
        self._forgotten -= prepared.tables.keys()
        prepared.changes = [change for change in prepared.changes if _is_needed(change, prepared.tables)]
        return prepared

    def adopt(self, prepared: PreparedTables) -> set[Path]:
        """Take over what a durable manifest says; return the files that it no longer names."""
        with self._lock:
            before = self.paths() | {self._change_path(self._number)}
            self.tables, self.changes, self._sums = prepared.tables, prepared.changes, prepared.sums
            kept = {label.base for label in self.tables.values()}
            self._complete = {name: base for name, base in self._complete.items() if base.label.base not in kept}
            return before - self.paths()

    def load(self, name: str, target: Array | None = None) -> Array:
        """Return a table, verified while it is read. target: is filled instead of a new array.

        Raises StoreDamagedError, naming the file, if a part of it is altered or missing; KeyError if there is none.
        """
        label = self.tables[name]
        array = np.empty(label.shape, label.dtype) if target is None else target
        if list(array.shape) != label.shape or array.dtype != np.dtype(label.dtype):
            raise ConfigurationError(
                f"table {name} is {label.dtype}{label.shape}, the target {array.dtype.str}{list(array.shape)}"
            )
        raw = _raw(array)
        sums = np.zeros(-(-len(raw) // PAGE_BYTES), np.uint64)
        self._read_base(label, raw, sums)
        for change in self.changes:
            for section in change.sections:
                if section.table == name and change.number > label.since:
                    self._apply(change, section, raw, sums)
        self._sums[name] = sums
        return array

    def _copy(self, file: Any, raw: npt.NDArray[np.uint8], sums: Sums) -> Iterator[int]:
        """Write `raw` piece by piece, each from a copy, so that its checksums are of what is written."""
        piece_bytes = _PIECE_PAGES * PAGE_BYTES
        piece = np.empty(min(piece_bytes, len(raw)), np.uint8)
        unsynced = 0
        for start in range(0, len(raw), piece_bytes):
            content = piece[: min(piece_bytes, len(raw) - start)]
            np.copyto(content, raw[start : start + len(content)])
            _fill_sums(content, start // PAGE_BYTES, sums)
            _write_whole(file, content.data)
            unsynced += len(content)
            self.written_bytes += len(content)
            if unsynced >= _SYNC_BYTES:
                os.fdatasync(file.fileno())
                _drop_cache(file.fileno())
                unsynced = 0
            yield len(content)

    def _base_of(self, name: str, array: Array, *, words: bool) -> _Base | None:
        """Return the base that changes of `array` may refer to, or None if a new one is needed."""
        base = self._complete.get(name)
        if base is None and name not in self._forgotten and name in self.tables and (words or name in self._sums):
            base = _Base(self.tables[name], self._sums.get(name, np.zeros(0, np.uint64)))
        if base is None or base.label.words != words or base.label.dtype != array.dtype.str:
            return None
        if words:
            return base if base.label.shape == list(array.shape) else None
        size = int(np.prod(base.label.shape, dtype=np.int64)) * array.dtype.itemsize
        pages = -(-array.nbytes // PAGE_BYTES)
        if array.nbytes < size:
            return None
        sums = np.zeros(pages, np.uint64)
        sums[: len(base.sums)] = base.sums
        return _Base(base.label, sums)

    def _changed_bytes(self, name: str, label: TableLabel) -> int:
        return sum(
            section.count * (section.unit + 8)
            for change in self.changes
            if change.number > label.since
            for section in change.sections
            if section.table == name
        )

    def _change_path(self, number: int) -> Path:
        return self._folder / f"changes-{number}"

    def _read_base(self, label: TableLabel, raw: npt.NDArray[np.uint8], sums: Sums) -> None:
        path, pages = self._folder / label.base, -(-label.base_bytes // PAGE_BYTES)
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(label.base_bytes)
                stored = np.frombuffer(file.read(8 * pages + 1), np.uint8)
                if len(stored) != 8 * pages or _sum_of(stored.view("<u8")) != label.base_sum:
                    raise StoreDamagedError(f"{path} has another size or other checksums than the manifest says")
                file.seek(0)
                expected = stored.view("<u8")
                for start in range(0, label.base_bytes, 1 << 20):
                    if start % _AHEAD_BYTES == 0:
                        _read_ahead(file.fileno(), start, 2 * _AHEAD_BYTES)
                    content = raw[start : min(start + (1 << 20), label.base_bytes)]
                    _read_whole(file, content.data)
                    first = start // PAGE_BYTES
                    _fill_sums(content, first, sums)
                    differing = np.flatnonzero(
                        sums[first : first + -(-len(content) // PAGE_BYTES)]
                        != expected[first : first + -(-len(content) // PAGE_BYTES)]
                    )
                    if len(differing):
                        raise StoreDamagedError(
                            f"{path}: block {first + int(differing[0])} does not match its checksum"
                        )
        except OSError as error:
            raise StoreDamagedError(f"{path} cannot be read: {error}") from error
        raw[label.base_bytes :] = 0

    def _apply(self, change: ChangeFile, section: Section, raw: npt.NDArray[np.uint8], sums: Sums) -> None:
        path = self._change_path(change.number)
        digest_places, digest_contents = xxhash.xxh3_64(), xxhash.xxh3_64()
        units = -(-len(raw) // section.unit)
        step = min(section.count, max(1, min(_PLACES, (8 << 20) // section.unit)))
        places_read, contents_read = np.empty(step, "<u8"), np.empty(step * section.unit, np.uint8)
        try:
            with path.open("rb", buffering=0) as file:
                _read_ahead(file.fileno(), section.offset, section.count * (8 + section.unit))
                for first in range(0, section.count, step):
                    count = min(step, section.count - first)
                    places, contents = places_read[:count], contents_read[: count * section.unit]
                    file.seek(section.offset + 8 * first)
                    _read_whole(file, _raw(places).data)
                    file.seek(section.offset + 8 * section.count + section.unit * first)
                    _read_whole(file, contents.data)
                    digest_places.update(_raw(places).data)
                    digest_contents.update(contents.data)
                    if int(places.max()) >= units:
                        raise StoreDamagedError(f"{path} has a place outside table {section.table}")
                    _scatter(raw, section.unit, places, contents)
                    if section.unit == PAGE_BYTES:
                        for page in places.tolist():
                            _fill_sums(raw[page * PAGE_BYTES : (page + 1) * PAGE_BYTES], page, sums)
        except OSError as error:
            raise StoreDamagedError(f"{path} cannot be read: {error}") from error
        if _joined(digest_places, digest_contents) != section.checksum:
            raise StoreDamagedError(f"{path}: changes of table {section.table} do not match their checksum")


def _is_needed(change: ChangeFile, tables: Mapping[str, TableLabel]) -> bool:
    """Return whether a table has changes in the file that its base does not contain."""
    needing = (tables.get(section.table) for section in change.sections)
    return any(table is not None and table.since < change.number for table in needing)


def _raw(array: Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without a copy."""
    if not array.flags.c_contiguous:
        raise ConfigurationError("a table must be a contiguous array")
    return array.reshape(-1).view(np.uint8)


def _fill_sums(content: npt.NDArray[np.uint8], first: int, sums: Sums) -> None:
    """Write the checksums of the pages of `content` to sums[first:]."""
    digest = xxhash.xxh3_64_intdigest
    for at, start in enumerate(range(0, len(content), PAGE_BYTES), first):
        sums[at] = digest(content[start : start + PAGE_BYTES].data, at + 1)


def _sum_of(sums: npt.NDArray[Any]) -> int:
    return xxhash.xxh3_64_intdigest(sums.astype("<u8").tobytes())


def _write_words(file: BinaryIO, name: str, array: Array, changes: WordChanges) -> list[Section]:
    if not len(changes.places):
        return []
    places = np.ascontiguousarray(changes.places, "<u8")
    words = np.ascontiguousarray(changes.words, array.dtype)
    if len(places) != len(words) or int(places.max()) >= array.size:
        raise ConfigurationError(f"changes of table {name}: {len(places)} places, {len(words)} words, or out of range")
    return [_write_section(file, name, array.dtype.itemsize, places, [_raw(words).data])]


def _write_pages(file: BinaryIO, name: str, array: Array, sums: Sums) -> list[Section]:
    """Write the pages of `array` that differ from `sums`, and update it."""
    raw, new = _raw(array), np.zeros_like(sums)
    _fill_sums(raw, 0, new)
    places = np.flatnonzero(new != sums).astype("<u8")
    sums[:] = new
    if not len(places):
        return []
    pages = (raw[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in places.tolist())
    contents = (page.data if len(page) == PAGE_BYTES else page.tobytes().ljust(PAGE_BYTES, b"\0") for page in pages)
    return [_write_section(file, name, PAGE_BYTES, places, contents)]


def _write_section(
    file: BinaryIO, name: str, unit: int, places: npt.NDArray[Any], contents: Iterable[bytes | memoryview]
) -> Section:
    offset = file.tell()
    digest_places, digest_contents = xxhash.xxh3_64(_raw(places).data), xxhash.xxh3_64()
    file.write(_raw(places).data)
    for content in contents:
        digest_contents.update(content)
        file.write(content)
    return Section(name, unit, len(places), offset, _joined(digest_places, digest_contents))


def _joined(places: xxhash.xxh3_64, contents: xxhash.xxh3_64) -> int:
    return xxhash.xxh3_64_intdigest(places.digest() + contents.digest())


def _scatter(
    raw: npt.NDArray[np.uint8], unit: int, places: npt.NDArray[np.uint64], contents: npt.NDArray[np.uint8]
) -> None:
    """Write units of `unit` bytes at their places; the last unit of `raw` may be shorter."""
    if unit == PAGE_BYTES:
        for at, page in enumerate(places.tolist()):
            target = raw[page * unit : (page + 1) * unit]
            target[:] = contents[at * unit : at * unit + len(target)]
        return
    kind = f"u{unit}" if unit in {1, 2, 4, 8} else f"V{unit}"
    raw.view(kind)[places.astype(np.int64)] = contents.view(kind)


def _write_whole(file: Any, data: memoryview) -> None:
    while len(data):
        data = data[file.write(data) :]


def _read_whole(file: Any, target: memoryview) -> None:
    while len(target):
        size = file.readinto(target)
        if not size:
            raise StoreDamagedError(f"{file.name} ends too early")
        target = target[size:]


def _drop_cache(file: int) -> None:
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _read_ahead(file: int, at: int, size: int) -> None:
    """Ask for bytes that are read soon, so that the disk reads them while others are verified."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, at, size, os.POSIX_FADV_WILLNEED)
