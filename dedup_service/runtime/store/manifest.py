"""What belongs to a store, in one small file that is replaced as a whole: `manifest.json`.

One line of JSON with a checksum of the rest. It is written under a temporary name, fsynced and renamed, and then the
folder is fsynced: a crash leaves the manifest before or the one after. A file that no manifest names is not part
of the store and is deleted when the store is opened.

"""

import os
from pathlib import Path
from typing import TypeVar

import msgspec
import xxhash

from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError, translated_os_errors

MANIFEST = "manifest.json"
INTENT = "erasure.json"
"""The intent of an erasure (see `erasure`): it exists only while one is under way."""

STORE_VERSION = 5


class StoreLabel(msgspec.Struct, frozen=True):
    """Whose rows these are. log: identity of the log; space_id: of its fingerprints."""

    log: str
    space_id: str


class FileLabel(msgspec.Struct):
    """The committed part of a file. tail_sum: checksum of the last, partial block."""

    length: int = 0
    tail_sum: int = 0


class SegmentLabel(msgspec.Struct):
    """A segment. rows: in its file; compacted: whether rows are missing; members_sum: checksum of which are there."""

    number: int
    generation: int
    rows: int
    files: dict[str, FileLabel]
    compacted: bool = False
    members_sum: int = 0

    @property
    def stem(self) -> str:
        """The names of its files, up to the first dot."""
        return f"{self.number:05d}-{self.generation}"


class LiveLabel(msgspec.Struct):
    """The bitmap of live rows. first: its first segment; length: its bytes; checksum: of all of it."""

    number: int
    first: int
    length: int
    checksum: int


class ExtraLabel(msgspec.Struct):
    """The file of what a commit has beside the rows. length: its bytes; checksum: of all of it."""

    number: int
    length: int
    checksum: int


class StoreSizes(msgspec.Struct):
    """Sizes when the commit was begun, of what a reader would have to load to measure.

    memory: bytes by structure. live: rows. cells: with an entry, or that turned some away; overflowed: the latter.
    """

    memory: dict[str, int]
    live: int
    cells: int
    overflowed: int


class Manifest(msgspec.Struct):
    """All files of a store. sequence, tail: last record of the log that is in it, and its digest.

    next_row: first unused row number. sizes: None in commits without tables. extra: None if the caller gave nothing.
    """

    version: int
    identity: str
    label: StoreLabel
    segment_rows: int
    sequence: int = 0
    tail: str = ""
    next_row: int = 0
    live: LiveLabel | None = None
    segments: list[SegmentLabel] = []
    sizes: StoreSizes | None = None
    extra: ExtraLabel | None = None


class _Version(msgspec.Struct):
    version: int


T = TypeVar("T")


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in `folder`; StoreDamagedError if it is altered, ForeignStoreError for another version."""
    path = folder / MANIFEST
    content = read_checked(path, msgspec.Raw)
    try:
        version = msgspec.json.decode(content, type=_Version).version
        if version != STORE_VERSION:
            raise ForeignStoreError(
                f"{path} has version {version}, this twinsieve reads {STORE_VERSION}: start a new state folder and "
                "read the same input again with `filter`"
            )
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}") from error


def write_checked(path: Path, value: msgspec.Struct) -> None:
    """Write `value` with a checksum to `path`, atomically and durably; StoreFullError leaves the old file."""
    content = msgspec.json.encode(value)
    line = b'{"checksum":"%s","content":%s}\n' % (xxhash.xxh3_128_hexdigest(content).encode(), content)
    temporary = path.with_suffix(".tmp")
    with translated_os_errors(path):
        try:
            with temporary.open("wb") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


class _Checked(msgspec.Struct):
    checksum: str
    content: msgspec.Raw


def read_checked(path: Path, kind: type[T]) -> T:
    """Return what `write_checked` wrote; StoreDamagedError if it is altered or missing."""
    try:
        checked = msgspec.json.decode(path.read_bytes(), type=_Checked)
        if xxhash.xxh3_128_hexdigest(bytes(checked.content)) != checked.checksum:
            raise StoreDamagedError(f"{path} does not match its checksum")
        return msgspec.json.decode(checked.content, type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}") from error


def sync_directory(folder: Path) -> None:
    """Make creations, renames and removals in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
