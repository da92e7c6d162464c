"""The last snapshot of a shard, to copy from: in a folder, or at an address of object storage.

    with open_source("state-2", scratch) as source:      # or "s3://bucket/shard-2"
        source.number, source.state, source.store, source.names

The shard may be running. Its manifest is replaced atomically, and the files that it names are there until a later one;
what was written of them is only appended to. A folder is read in place: its files are mapped at once, so that they stay
readable when the shard deletes them. From an address, the files are downloaded into `scratch` first. If one was gone
meanwhile, or another manifest belongs to it, the newer manifest is read and what has changed is downloaded again.

Checksums are those of the store: each block is verified when it is read, and belongs to one place of one store. Names
are a cache, and the shard has its file locked. So the file is copied, and a name counts only if its URL has the hash
that the entry has.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.shards.shard import ShardNumber, ShardState
from dedup_service.runtime.addresses import RemoteFolder, is_address
from dedup_service.runtime.embedded.database import WRITE_AHEAD, ForeignStateError, StateFullError, copy_database
from dedup_service.runtime.embedded.folder import FolderKind
from dedup_service.runtime.kafka.state.deciding_state import (
    DecidingState,
    UnreadableDecidingStateError,
    decode_deciding_state,
)
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE, PAGES_FOLDER
from dedup_service.runtime.kafka.state.page_names import PageNameFile
from dedup_service.runtime.kafka.state.shard_state import number_in, shard_state
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import MANIFEST, Manifest, read_manifest
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.store_files import row_files

Report = Callable[[str, int, int], None]
"""Progress: (stage, done, total); total 0 if it is unknown."""

_ATTEMPTS = 8
"""Manifests that may follow each other before a download gives up."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardSource:
    """A snapshot of shard `number`. name: what the caller calls it. state: as it is stored; shard: of it.

    store: read only, without anything that was written later. names: a copy of those that the shard had.
    """

    name: str
    number: ShardNumber
    state: DecidingState
    shard: ShardState
    store: PageStore
    names: PageNameFile

    @property
    def log(self) -> str:
        """Identity of its log."""
        return self.store.manifest.label.log


@contextmanager
def open_source(source: str, scratch: Path, report: Report) -> Iterator[ShardSource]:
    """Yield the last snapshot of the shard at `source`. scratch: a folder for copies, which is created.

    ConfigurationError if there is no such folder, or a library is missing; StateError without a snapshot;
    ForeignStateError for the state of something else; StoreDamagedError, and later for what is read later, if a file is
    missing, altered or of another store; AddressUnreachableError.
    """
    try:
        scratch.mkdir()
    except OSError as error:
        raise StateFullError(f"cannot write to {scratch}: {error}; free space") from error
    if is_address(source):
        store = _downloaded(source, scratch, report)
    else:
        if not Path(source).is_dir():
            raise ConfigurationError(f"{source} is no folder: give the --state of a shard, or an address of a copy")
        store = _opened(source, Path(source) / PAGES_FOLDER)
        copy_database(Path(source) / NAMES_FILE, scratch / NAMES_FILE)  # what can be read of it is enough
    try:
        state, number, shard = _decoded(source, store)
        names = PageNameFile(scratch / NAMES_FILE, store.manifest.label.log)
        try:
            yield ShardSource(source, number, state, shard, store, names)
        finally:
            names.close()
    finally:
        store.close()


def _opened(source: str, pages: Path) -> PageStore:
    """Return the store in a folder, read only."""
    store = None
    if (pages / MANIFEST).exists():
        manifest = read_manifest(pages)
        if manifest.extra or not (pages.parent / FolderKind.SERVICE.mark).exists():  # none before the first snapshot
            store = PageStore.open_read_only(pages, manifest.label)
    if store is None:
        raise StateError(
            f"{source} has no snapshot of a shard: wait for its first one, or stop the shard, which takes one then"
        )
    return store


def _decoded(source: str, store: PageStore) -> tuple[DecidingState, ShardNumber, ShardState]:
    try:
        state = decode_deciding_state(store.extra())
    except UnreadableDecidingStateError as error:
        raise ForeignStateError(f"{source} has no state of a shard that can be read: {error}") from error
    number = number_in(state.replica)
    if number is None:
        raise ForeignStateError(f"{source} has the state of no shard: give the folder of `serve --steps shard`")
    manifest = store.manifest
    if state.replica.policy is None or (state.replica.log, state.replica.sequence) != (
        manifest.label.log,
        manifest.sequence,
    ):
        raise StoreDamagedError(f"{source} has a state of another log or place than its {MANIFEST} says")
    return state, number, shard_state(state.replica)


def _downloaded(address: str, scratch: Path, report: Report) -> PageStore:
    """Download a snapshot from an address, and return its store."""
    remote = RemoteFolder(address)
    pages = scratch / PAGES_FOLDER
    pages.mkdir()
    there: dict[str, str] = {}
    for attempt in range(_ATTEMPTS):
        content = _manifest_of(remote)
        (pages / MANIFEST).write_bytes(content)
        manifest = read_manifest(pages)
        try:
            _download(remote, manifest, pages, there, report)
            store = _opened(address, pages)
        except (FileNotFoundError, StoreDamagedError) as error:
            there.clear()
            if attempt + 1 < _ATTEMPTS and _manifest_of(remote) != content:  # the shard has taken a later snapshot
                continue
            raise StoreDamagedError(
                f"{address} has no complete snapshot: {error}; copy the folder of the shard there again, its "
                f"{PAGES_FOLDER}/{MANIFEST} last, or stop the shard first"
            ) from error
        for name in (NAMES_FILE, NAMES_FILE + WRITE_AHEAD):
            with suppress(FileNotFoundError):
                remote.get(name, scratch / name)
        return store
    raise AssertionError("the last attempt raises")


def _download(remote: RemoteFolder, manifest: Manifest, pages: Path, there: dict[str, str], report: Report) -> None:
    """Download the files of rows that a manifest names. there: those that are, with their labels."""
    wanted = row_files(manifest)
    total = sum(file.size_bytes for file in wanted)
    done = 0
    report("download", done, total)
    for file in wanted:
        if there.get(file.name) != file.label:
            remote.get(f"{PAGES_FOLDER}/{file.name}", pages / file.name)
            there[file.name] = file.label
        done += file.size_bytes
        report("download", done, total)


def _manifest_of(remote: RemoteFolder) -> bytes:
    """Return the manifest; StateError if there is none."""
    try:
        return remote.read(f"{PAGES_FOLDER}/{MANIFEST}")
    except FileNotFoundError as error:
        raise StateError(
            f"{remote.address} has no {PAGES_FOLDER}/{MANIFEST}: give the address of a copy of a shard's --state"
        ) from error
