"""Makes the folder of a shard from folders of shards that have its slots: another number of shards shares the log.

    facts = copy_shard(ShardNumber(6, 8), Path("state-6"), ["s3://bucket/shard-2-of-4"], report)

Entries are never decided again. A slot of the cells does not look at others, and an entry has its path through them; so
the tables of a shard are a function of its live rows. The rows of its slots are appended to a new store, in order of
their sequences, and the tables are built from them as at each start. The rest of the state is that of the source,
with the pages that wait for their outcome in slots of the new shard. It goes on from the message behind the snapshot.

Several sources are merged only at the same message of the log: each of them has the entries of another moment
otherwise.

Everything is made in `copying` within the new folder, and moved as the last step. So a kill leaves a folder without
kept pages: a start of `serve` sees no snapshot in it, and the next copy clears it. Whatever else a folder has is never
overwritten. The folder is locked meanwhile.

The last snapshot of a shard, to copy from: in a folder, or at an address of object storage.

    with open_source("state-2", scratch) as source:      # or "s3://bucket/shard-2"
        source.number, source.state, source.store, source.names

The shard may be running. Its manifest is replaced atomically, and the files beside it only grow. A folder is read in
place, and held: rows that a later snapshot has not stay meanwhile, but for those that are taken down. From an address,
the files are downloaded into `scratch` first, and again if the manifest has changed meanwhile.

Checksums are those of the store: each row is verified when it is read, and belongs to one place of one store. Names
are a cache, and the shard has its file locked. So the file is copied, and a name counts only if its URL has the hash
that the entry has.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

from dedup_service._native import Entry, PageStore, read_commit, read_manifest
from dedup_service.core.errors import ConfigurationError, RecordError, StateError
from dedup_service.core.log_records import Policy, offset_of
from dedup_service.core.shards.shard import ShardNumber, ShardState, UndecidedMessage, open_shard, shard_sizes
from dedup_service.core.url import canonicalise, url_hash
from dedup_service.runtime.addresses import RemoteFolder, is_address
from dedup_service.runtime.embedded.database import WRITE_AHEAD, ForeignStateError, StateFullError, copy_database
from dedup_service.runtime.embedded.folder import FolderKind
from dedup_service.runtime.kafka.state.deciding_state import (
    DecidingState,
    decode_deciding_state,
    encode_deciding_state,
    pending_outcomes_of,
)
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE, PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.state.page_names import PageNameFile, PageNameStore
from dedup_service.runtime.kafka.state.shard_state import number_in, replica_state, shard_state
from dedup_service.runtime.store.decider_state import UnreadableStateError
from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.page_files import ERASED, GROWING, MANIFEST, open_or_create, open_pages, sync_directory
from dedup_service.runtime.store.stored_entries import StoredEntries, live_pieces, pieces_of

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
    store, manifest = None, read_manifest(pages)
    is_service = (pages.parent / FolderKind.SERVICE.mark).exists()
    if manifest is not None and (not is_service or (manifest.number and manifest.sequence >= 0)):
        store = open_pages(pages, held=True)
    if store is None:
        raise StateError(
            f"{source} has no snapshot of a shard: wait for its first one, or stop the shard, which takes one then"
        )
    return store


def _decoded(source: str, store: PageStore) -> tuple[DecidingState, ShardNumber, ShardState]:
    try:
        state = decode_deciding_state(store.take_extra())
    except UnreadableStateError as error:
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
    for attempt in range(_ATTEMPTS):
        content = _manifest_of(remote)
        (pages / MANIFEST).write_bytes(content)
        try:
            _download(remote, pages, report)
            if _manifest_of(remote) != content:  # rows that a later snapshot has not may be zeros by now
                continue
            store = _opened(address, pages)
        except (FileNotFoundError, StoreDamagedError) as error:
            if attempt + 1 < _ATTEMPTS and _manifest_of(remote) != content:  # the shard has taken a later snapshot
                continue
            raise StoreDamagedError(
                f"{address} has no complete snapshot: {error}; copy the folder of the shard there again, its "
                f"{PAGES_FOLDER}/{MANIFEST} first, or stop the shard first"
            ) from error
        for name in (NAMES_FILE, NAMES_FILE + WRITE_AHEAD):
            with suppress(FileNotFoundError):
                remote.get(name, scratch / name)
        return store
    raise StoreDamagedError(f"{address} changes all the time: stop the shard first")


def _download(remote: RemoteFolder, pages: Path, report: Report) -> None:
    """Download the files beside the manifest."""
    done = 0

    def more(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        report("download", done, 0)

    (pages / ERASED).unlink(missing_ok=True)
    for name in GROWING:
        remote.get(f"{PAGES_FOLDER}/{name}", pages / name, more)
    with suppress(FileNotFoundError):  # there is none without a take-down since the commit
        remote.get(f"{PAGES_FOLDER}/{ERASED}", pages / ERASED)


def _manifest_of(remote: RemoteFolder) -> bytes:
    """Return the manifest; StateError if there is none."""
    try:
        return remote.read(f"{PAGES_FOLDER}/{MANIFEST}")
    except FileNotFoundError as error:
        raise StateError(
            f"{remote.address} has no {PAGES_FOLDER}/{MANIFEST}: give the address of a copy of a shard's --state"
        ) from error


_COPYING = "copying"
_LEFT_BY_LOCKS = frozenset({"lock", "holder", "instance", "lost+found"})
"""What a folder may have that is empty otherwise: `LocalState.open` makes some, and a file system the last."""

Slots = Sequence[bool]
"""Some of the slots of a log: whether each is among them."""


@dataclass(frozen=True, slots=True)
class CopiedShard:
    """What was copied.

    shard: as in 6/8. entries: kept pages; names: of how many of them the name was copied, too. size_bytes: of the new
    folder. log: its identity. offset: of the last message of the log that is in it. seconds: how long it took.
    """

    shard: str
    entries: int
    names: int
    size_bytes: int
    log: str
    offset: int
    seconds: float


def copy_shard(number: ShardNumber, folder: Path, sources: Sequence[str], report: Report) -> CopiedShard:
    """Make the state folder of shard `number` in `folder`, which is empty or missing, from shards that have its slots.

    sources: folders or addresses (`ShardSource`). Raises ConfigurationError for slots that cannot be shared so, for
    sources that have not all of them, and for a folder that is not empty; StateError for sources at different places;
    StoreDamagedError if what was read is altered; StateInUseError; StoreFullError; what `open_source` raises.
    """
    began = time.monotonic()
    _require_empty(folder)
    with LocalState.open(folder):
        _require_empty(folder)
        work = folder / _COPYING
        with translated_os_errors(folder):
            _clear(folder, work)
            work.mkdir()
        try:
            copied = _copy(number, work, sources, report)
            with translated_os_errors(folder):
                with suppress(FileNotFoundError):  # a file of names that failed: they are read from the log
                    (work / NAMES_FILE).replace(folder / NAMES_FILE)
                sync_directory(folder)
                (work / PAGES_FOLDER).rename(folder / PAGES_FOLDER)
                sync_directory(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return replace(copied, size_bytes=size_bytes, seconds=time.monotonic() - began)


def _require_empty(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    own = _LEFT_BY_LOCKS
    if _COPYING in names and PAGES_FOLDER not in names:  # what a kill left
        own |= {_COPYING, NAMES_FILE}
    if names - own:
        raise ConfigurationError(
            f"{folder} is not empty: it has {', '.join(sorted(names - own)[:3])}; give a new folder for the shard"
        )


def _clear(folder: Path, work: Path) -> None:
    """Remove what a kill left of an earlier copy."""
    if work.exists():
        shutil.rmtree(work)
        (folder / NAMES_FILE).unlink(missing_ok=True)


def _copy(number: ShardNumber, work: Path, names: Sequence[str], report: Report) -> CopiedShard:
    """Make store and names in `work`."""
    with ExitStack() as stack:
        scratch = [work / f"from-{place}" for place in range(len(names))]
        sources = [
            stack.enter_context(open_source(name, own, report)) for name, own in zip(names, scratch, strict=True)
        ]
        policy = sources[0].shard.policy
        assert policy is not None  # a source has one
        shares = _shares(number, sources, policy.layout.slots)
        _require_one_place(sources)
        latest = max(sources, key=_outcomes_known)
        state = _state_of(latest, sources, shares)
        entries, named = _append_entries(work, sources, shares, report)
        extra = encode_deciding_state(replica_state(state, number), pending_outcomes_of(latest.state))
        manifest = latest.store.manifest
    for own in scratch:
        shutil.rmtree(own)
    report("tables", 0, 0)
    label, pages = manifest.label, work / PAGES_FOLDER
    with closing(StoredEntries.open(pages, label, policy.rule, policy.layout)) as stored:
        sizes = shard_sizes(open_shard(policy, stored), state.undecided)
        _check(stored, number, entries, report)
        stored.begin_commit(manifest.sequence, manifest.tail, extra, sizes)()
    _check_state(pages, number, state.offset)
    return CopiedShard(str(number), entries, named, 0, label.log, state.offset, 0.0)


def _shares(number: ShardNumber, sources: Sequence[ShardSource], slots: int) -> list[Slots]:
    """Return which slots of the shard each source gives. ConfigurationError unless it is all."""
    for source in sources:
        if source.log != sources[0].log:
            raise ConfigurationError(
                f"{source.name} is of log {source.log}, {sources[0].name} of {sources[0].log}: give shards of one log"
            )
    number.check(slots)
    missing, shares = [number.owns(slot) for slot in range(slots)], list[Slots]()
    for source in sources:
        share = [is_missing and source.number.owns(slot) for slot, is_missing in enumerate(missing)]
        if not any(share):
            raise ConfigurationError(
                f"{source.name} is shard {source.number}, which has no slots of {number} that no other source has: "
                f"leave it out; {_needed(number, source.number.of)}"
            )
        missing = [is_missing and not is_given for is_missing, is_given in zip(missing, share, strict=True)]
        shares.append(share)
    if any(missing):
        found = " and ".join(f"{source.number}" for source in sources)
        raise ConfigurationError(
            f"shard {number} has slots that {found} {'has' if len(sources) == 1 else 'have'} not: "
            f"{_needed(number, sources[0].number.of)}"
        )
    return shares


def _needed(number: ShardNumber, of: int) -> str:
    """Say which of `of` shards have slots of a shard."""
    slots = range(number.index - 1, number.of * of, number.of)
    shards = [f"{index}/{of}" for index in sorted({slot % of + 1 for slot in slots})]
    return f"of {of} shards, {' and '.join(shards)} {'has' if len(shards) == 1 else 'have'} them"


def _require_one_place(sources: Sequence[ShardSource]) -> None:
    """Raise StateError unless all sources are at the same message of the same log."""
    first = sources[0]
    for source in sources[1:]:
        if source.shard.offset != first.shard.offset:
            raise StateError(
                f"{first.name} is at message {first.shard.offset} of the log, {source.name} at {source.shard.offset}: "
                "shards are merged at one message. Stop the steps `fingerprint`, so that the log ends, wait until all "
                "shards have answered, stop them, which takes a snapshot each, and copy then"
            )
        if _place(source) != _place(first):
            raise StateError(
                f"{first.name} and {source.name} are of different logs or policies at message {first.shard.offset}: "
                "give shards of one log"
            )


def _place(source: ShardSource) -> tuple[str, Policy | None, int, list[tuple[int, int, int]]]:
    """Return what shards at one message have in common."""
    waiting = [(message.offset, message.first, message.count) for message in source.shard.undecided]
    return source.store.manifest.tail, source.shard.policy, source.shard.ordinal, waiting


def _outcomes_known(source: ShardSource) -> int:
    """Return of how many messages that wait a source knows the outcomes."""
    return sum(message.outcome is not None for message in source.shard.undecided)


def _state_of(latest: ShardSource, sources: Sequence[ShardSource], shares: Sequence[Slots]) -> ShardState:
    """Return the state of the new shard. latest: the source that knows most outcomes; others know some of these."""
    undecided = tuple(
        replace(message, own=own, names=names, done=done)
        for place, message in enumerate(latest.shard.undecided)
        for own, names, done in [_own([source.shard.undecided[place] for source in sources], shares)]
    )
    taken_down = frozenset[int]().union(*(source.shard.taken_down for source in sources))
    return replace(latest.shard, undecided=undecided, taken_down=taken_down)


def _own(
    messages: Sequence[UndecidedMessage], shares: Sequence[Slots]
) -> tuple[list[Entry], list[tuple[str, str]], int]:
    """Return the pages of a message that are in some slots of sources, with their names, and how many are done."""
    pages, done = list[tuple[Entry, tuple[str, str]]](), 0
    for message, share in zip(messages, shares, strict=True):
        for place, (entry, name) in enumerate(zip(message.own, message.names, strict=True)):
            if share[entry.ordinal % len(share)]:
                pages.append((entry, name))
                done += place < message.done  # all sources have done the pages up to the same one
    pages.sort(key=lambda page: page[0].ordinal)
    return [entry for entry, _ in pages], [name for _, name in pages], done


def _append_entries(
    work: Path, sources: Sequence[ShardSource], shares: Sequence[Slots], report: Report
) -> tuple[int, int]:
    """Append the entries of the sources to a new store, and their names to a new file; return how many."""
    progress = _Progress(report, sum(len(source.store) for source in sources))
    label = sources[0].store.manifest.label
    with closing(PageNameStore(work / NAMES_FILE)) as names, closing(open_or_create(work / PAGES_FOLDER, label)) as new:
        names.begin(label.log, -1, _no_name)
        copied = _NamesCopied(names)
        entries, last = 0, -1
        streams = [_chosen(source, share, progress, copied) for source, share in zip(sources, shares, strict=True)]
        for piece in pieces_of(merge(*streams, key=attrgetter("sequence"))):
            for entry in piece:
                if entry.sequence <= last:
                    raise StoreDamagedError(
                        "the entries of the sources are not in the order of the log, or some are twice"
                    )
                last = entry.sequence
            new.append(piece)
            entries += len(piece)
        new.begin_commit(-1, "", b"").finish(b"")  # without a state, so that it is no snapshot
    return entries, copied.count


@dataclass(slots=True)
class _Progress:
    report: Report
    total: int
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        self.report("entries", self.done, self.total)


class _NamesCopied:
    """Copies names of entries, and counts them."""

    def __init__(self, names: PageNameStore) -> None:
        self._names = names
        self.count = 0

    def copy(self, source: ShardSource, entries: Sequence[Entry]) -> None:
        """Copy the names of entries that a source has. One that is not of its entry is left out: the log has it."""
        found = source.names.between(entries[0].sequence, entries[-1].sequence)
        for entry in entries:
            name = found.get(entry.sequence)
            if name is not None and _has_hash(name[1], entry.url_hash):
                self._names.add(entry.sequence, *name)
                self.count += 1


def _has_hash(url: str, url_key: int) -> bool:
    try:
        return url_hash(url) == url_key or url_hash(canonicalise(url)) == url_key
    except RecordError:
        return False


def _no_name(sequence: int) -> NoReturn:
    """A copy reads no names from the log."""
    raise StateError(f"the name of page {sequence} is read from the log")


def _chosen(source: ShardSource, slots: Slots, progress: _Progress, names: _NamesCopied) -> Iterator[Entry]:
    """Yield the live entries of a source in some slots, with their evidence and paths, and copy their names."""
    for numbers in live_pieces(source.store):
        entries = source.store.entries(numbers, with_evidence=False)
        wanted = [entry.row for entry in entries if slots[entry.ordinal % len(slots)]]
        if not all(entry.settled for entry in entries):
            raise StoreDamagedError(f"{source.name} has an entry in its store that is not settled")
        if piece := source.store.entries(wanted):
            names.copy(source, piece)
            yield from piece
        progress.add(len(numbers))


def _check(stored: StoredEntries, number: ShardNumber, entries: int, report: Report) -> None:
    """Check the new store, all of whose rows were verified as the tables were built of them; StoreDamagedError."""
    seen = 0
    for numbers in live_pieces(stored.pages):
        found = stored.pages.entries(numbers, with_evidence=False)
        if not all(entry.settled and number.owns(entry.ordinal) for entry in found):
            raise StoreDamagedError(f"{stored.pages.folder} has entries of other slots than those of shard {number}")
        seen += len(found)
        report("check", seen, entries)
    if seen != entries:
        raise StoreDamagedError(f"{stored.pages.folder} has {seen} entries, {entries} were copied")


def _check_state(pages: Path, number: ShardNumber, offset: int) -> None:
    """Check that a start will find the snapshot of this shard at this place; StoreDamagedError."""
    commit = read_commit(pages)
    found = decode_deciding_state(b"" if commit is None else commit[1]).replica
    if number_in(found) != number or offset_of(found.sequence) != offset:
        raise StoreDamagedError(f"{pages} has the state of shard {number_in(found)}, not of {number} at {offset}")
