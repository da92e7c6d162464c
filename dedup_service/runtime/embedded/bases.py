"""Bases: states whose kept pages a new state is compared with, and which it never changes.

The log of a state with bases begins with theirs. So the verdicts on its pages are those that one run over all of it
gives: the new state begins as the first base was at its last commit, with its rule, its bounds, the pages in its
window, what guards count and what is known of the hosts' own text. Its kept pages stay where they are
(`store.page_files`). Pages of further bases are entered behind them (`further_bases`).

A state belongs to its bases as they were. It records how many records each one had, with the digest of the last of
them, and is refused if that is another one, or if more than retractions came after it. A page that is retracted in a
base is absent in every state that was begun with it: at once in a process that decides (`BaseJournal.retracted`), and
from the start in others. Nothing is written in the folder of a base, nor is it locked: what is read of it may lie on a
read-only mount, and any number of states may use it. Names of its pages are read from its journal when a verdict needs
them.
"""

import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dedup_service._native import Manifest, PageStore, StoreLabel, read_commit, read_manifest
from dedup_service.core.decision.bases import base_of
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.runtime.addresses import RemoteFolder
from dedup_service.runtime.embedded.base_labels import BaseLabel
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.corrections import written_detail
from dedup_service.runtime.embedded.database import (
    WRITE_AHEAD,
    Access,
    Database,
    ForeignStateError,
    StateDamagedError,
    StateFullError,
    StateInUseError,
)
from dedup_service.runtime.embedded.folder import JOURNAL_FILE, PAGES_FOLDER, FolderKind, refuse_other_kind
from dedup_service.runtime.embedded.journal import Beginning, Header, require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.restore import state_in
from dedup_service.runtime.embedded.untouched import open_copy, open_untouched
from dedup_service.runtime.store.page_files import (
    ERASED,
    GROWING,
    MANIFEST,
    committed,
    go_on_from,
    has_other_files,
    open_pages,
)
from dedup_service.runtime.store.stored_entries import Report

_LOG = logging.getLogger(__name__)

_MOST_BASES = 16
"""Bases of bases of a base; more are one that names itself."""


class BaseJournal:
    """The journal of a base, which is read without a trace. scratch: a folder for a copy, if one is needed.

    A file without a write-ahead file is read in place. Another process may write to it all the same, now or later: then
    a copy is read from there on. depth: how many bases it is the base of.
    """

    def __init__(self, folder: Path, scratch: Path, depth: int = 0) -> None:
        self._path, self._scratch = folder / JOURNAL_FILE, scratch
        self._in_place: list[tuple[int, int]] = []
        self._looked = self._files()
        self._database = self._opened()
        try:
            with self._database.reading() as connection:
                self.header: Header = require_header(connection, str(self._path))
            self.log = JournalReader(self._database, self.header.space_id)
            self._retracted = self.log.retractions()
            self._inner = [(label, self._inner_journal(label, depth + 1)) for label in self.log.bases]
        except BaseException:
            self._database.close()
            raise

    def _inner_journal(self, label: BaseLabel, depth: int) -> "BaseJournal":
        """Open the journal of a base of the base, which has the names of its pages."""
        if not (Path(label.folder) / JOURNAL_FILE).exists() or depth > _MOST_BASES:
            raise StateError(
                f"{self._path.parent} was itself begun with the base {label.name}, which is not in {label.folder} any "
                f"more: put it there, or open {self._path.parent} once with `filter --base` and its new place"
            )
        journal = BaseJournal(Path(label.folder), self._scratch, depth)
        log = journal.log
        if log.tail(label.records) == label.commit and not log.goes_on(label.records, log.last_sequence()):
            return journal
        journal.close()
        raise StateError(
            f"{self._path.parent} was itself begun with the base {label.name}, and {label.folder} has changed since by "
            "more than retractions: put a copy there of what it was"
        )

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page."""
        database, own = self.at(sequence)
        return JournalReader(database, self.header.space_id).name(own)

    def at(self, sequence: int) -> tuple[Database, int]:
        """Return the open file that has the record of a page, and its sequence there."""
        for label, journal in self._inner:
            if base_of([label], sequence) is not None:
                return journal.at(sequence - label.after)
        if self._in_place and self._files() not in ([], self._in_place):
            self._database.close()
            self._database = self._copied()
            self.log = JournalReader(self._database, self.header.space_id)
        return self._database, sequence

    def retracted(self, records: int) -> set[int]:
        """Return the pages up to a record that were retracted after it, by now; costs little if nothing was written.

        What cannot be read at present, as while it is written, is read by a later call.
        """
        with suppress(StateError):
            if (files := self._files()) not in ([], self._looked):
                is_ahead = len(files) > 1
                with closing(open_untouched(self._path) if is_ahead else self._unchanging()) as database:
                    retracted = JournalReader(database, self.header.space_id).retractions()
                if is_ahead or files == self._files():
                    self._retracted, self._looked = retracted, files
        own = {page for page, by in self._retracted if page <= records < by}
        inner = (label.after + page for label, journal in self._inner for page in journal.retracted(label.records))
        return own.union(inner)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        for _, journal in self._inner:
            journal.close()

    def _opened(self) -> Database:
        if not self._path.exists():
            raise StateError(f"{self._path.parent} holds no twinsieve state: there is no {JOURNAL_FILE} in it")
        if len(self._files()) > 1:
            return self._copied()
        self._in_place = self._files()
        return self._unchanging()

    def _unchanging(self) -> Database:
        return Database(self._path, Access.UNCHANGING)

    def _files(self) -> list[tuple[int, int]]:
        """Return what changes when the journal does: of its file, and of its write-ahead file unless that is empty.

        [] if it is gone, which an open file is not.
        """
        paths = (self._path, self._path.with_name(self._path.name + WRITE_AHEAD))
        try:
            files = [path.stat() for path in paths if path.exists()]
        except OSError:
            return []
        return [(status.st_size, status.st_mtime_ns) for status in files if status.st_size]

    def _copied(self) -> Database:
        self._in_place = []
        try:
            folder = Path(tempfile.mkdtemp(dir=self._scratch))
        except OSError as error:
            raise StateFullError(f"cannot copy {self._path} to {self._scratch}: {error}; free space") from error
        return open_copy(self._path, folder)


@dataclass(frozen=True, eq=False)
class Base:
    """An open base. name: as it was given. manifest: of its last commit; None if it has no pages.

    records: the last record that counts; commit: its digest.
    """

    name: str
    folder: Path
    journal: BaseJournal
    manifest: Manifest | None
    records: int
    commit: str

    @property
    def pages(self) -> Path:
        """The folder of its kept pages."""
        return self.folder / PAGES_FOLDER

    @cached_property
    def state(self) -> DeciderState:
        """The state of its decider."""
        if self.manifest is None:
            return DeciderState()
        with store_errors():
            return state_now(self.pages)

    @cached_property
    def entries(self) -> int:
        """Kept pages that others are compared with."""
        if self.manifest is None:
            return 0
        with closing(self.store()) as store:
            return len(store) + len(self.state.young)

    @property
    def policy(self) -> dict[str, Any]:
        """Its policy."""
        return self.journal.log.policy()

    def store(self, *, held: bool = False) -> PageStore:
        """Open its kept pages; see `open_pages`."""
        assert self.manifest is not None
        with store_errors():
            store = open_pages(self.pages, self.manifest.label, held=held)
        assert store is not None
        return store

    def as_at(self, records: int, commit: str) -> "Base | None":
        """Return the base with so many records, of which the last has this digest, without what it retracted since.

        None if it is another one, or has gone on otherwise.
        """
        log, is_same = self.journal.log, (self.records, self.commit) == (records, commit)
        is_later = records < self.records and log.tail(records) == commit and not log.goes_on(records, self.records)
        return replace(self, records=records, commit=commit) if is_same or is_later else None

    @property
    def retracted(self) -> set[int]:
        """The pages that the base has retracted since, by its own sequences."""
        return self.journal.retracted(self.records)

    def label(self, after: int) -> BaseLabel:
        """Return what a state records of it. after: records before those of the base."""
        return BaseLabel(self.name, str(self.folder), self.journal.header.identity, self.commit, after, self.records)


def open_base(name: str, folder: Path, scratch: Path, space_id: str | None) -> Base:
    """Open the base in `folder`. name: as it was given. space_id: of the pages that come; None: that of the base.

    ConfigurationError if there is no such folder; StateError without a state; ForeignStateError for one of another
    space or kind; StateDamagedError, or StateInUseError while it is written too fast.
    """
    if not folder.is_dir():
        raise ConfigurationError(
            f"the base {name} is no folder: give the folder of a state, or an address as s3://…; if it was moved, "
            "give its new place with --base (in Scrapy TWINSIEVE_BASES)"
        )
    folder = folder.resolve()
    refuse_other_kind(folder, FolderKind.EMBEDDED)
    pages = folder / PAGES_FOLDER
    with store_errors():
        manifest = committed(pages)
    if manifest is None and has_other_files(pages):
        raise StateDamagedError(f"the base {name} has no {PAGES_FOLDER}/{MANIFEST}: restore it from a copy")
    journal = BaseJournal(folder, scratch)  # after the commit, which it therefore has
    try:
        _check(name, journal, manifest, space_id)
    except BaseException:
        journal.close()
        raise
    records, commit = (0, "") if manifest is None else (manifest.sequence, manifest.tail)
    return Base(name, folder, journal, manifest, records, commit)


def _check(name: str, journal: BaseJournal, manifest: Manifest | None, space_id: str | None) -> None:
    header, log = journal.header, journal.log
    if space_id not in {None, header.space_id}:
        raise ForeignStateError(
            f"the base {name} was made in space {header.space_id}, the pages would come in space {space_id}: "
            "fingerprints of two spaces cannot be compared. Give the --space that the base was made with, or "
            "filter its pages again"
        )
    records = 0 if manifest is None else manifest.sequence
    if manifest is not None and (
        manifest.label.log != header.identity or manifest.tail != log.tail(records) or records > log.last_sequence()
    ):
        raise StateDamagedError(
            f"the kept pages of the base {name} do not fit its journal: copy it again, while nobody writes to it"
        )
    later = log.last_sequence() - records
    if later:
        _LOG.warning(
            "the base %s has %d records after its last commit, which do not count: its process is running, or was "
            "killed; to have them, close it, or open it once with `twinsieve state compact`",
            name,
            later,
        )


def download_base(address: str, folder: Path, report: Report = lambda *_: None) -> None:
    """Download the base at an address into `folder`, unless it is there; go on with what an earlier call has finished.

    StateError if there is no state or it changes meanwhile; ConfigurationError, AddressUnreachableError.
    """
    if (folder / PAGES_FOLDER / MANIFEST).exists() or (folder / JOURNAL_FILE).exists():
        return
    work = folder.with_name(folder.name + ".tmp")
    try:
        (work / PAGES_FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateFullError(f"cannot write to {work}: {error}; free space") from error
    remote, told = RemoteFolder(address), 0

    def more(size_bytes: int) -> None:
        nonlocal told
        told += size_bytes
        report(f"downloading MB of {address}", told >> 20, 0)

    try:
        with suppress(FileNotFoundError):
            _download_pages(remote, work / PAGES_FOLDER, more)
        remote.get(JOURNAL_FILE, work / JOURNAL_FILE, more)
        with suppress(FileNotFoundError):
            remote.get(JOURNAL_FILE + WRITE_AHEAD, work / (JOURNAL_FILE + WRITE_AHEAD))
    except FileNotFoundError as error:
        raise StateError(
            f"{address} holds no twinsieve state: there is no {JOURNAL_FILE} in it; give the address of a copy of a "
            "state folder"
        ) from error
    work.rename(folder)


def remote_manifest(address: str, scratch: Path) -> Manifest | None:
    """Return the manifest of the base at an address, and leave it in `scratch`; None if it has none.

    ConfigurationError, AddressUnreachableError, StateDamagedError.
    """
    (scratch / MANIFEST).unlink(missing_ok=True)
    with suppress(FileNotFoundError), store_errors():
        RemoteFolder(address).get(f"{PAGES_FOLDER}/{MANIFEST}", scratch / MANIFEST)
        return read_manifest(scratch)
    return None


def _download_pages(remote: RemoteFolder, pages: Path, more: Callable[[int], None]) -> None:
    """Download the kept pages, but for files of this commit that are there; FileNotFoundError if there are none."""
    manifest = f"{PAGES_FOLDER}/{MANIFEST}"
    content = remote.read(manifest)
    if not (pages / MANIFEST).exists() or (pages / MANIFEST).read_bytes() != content:
        for path in pages.iterdir():
            path.unlink()
    (pages / MANIFEST).write_bytes(content)
    with store_errors():
        found = read_manifest(pages)
    if found is not None and found.base:
        raise StateError(
            f"{remote.address} is a state that was itself begun with a base: copy both to folders here, open the copy "
            "once with `filter --base` and the place of its base, and give its folder"
        )
    for name in (*GROWING, ERASED):
        try:
            if not (pages / name).exists():
                remote.get(f"{PAGES_FOLDER}/{name}", pages / name, more)
        except FileNotFoundError as error:
            if name != ERASED:  # there is none without a take-down since the commit
                raise StateDamagedError(
                    f"{remote.address} has no complete state, {name} is missing: copy the folder there again, "
                    "while nobody writes to it"
                ) from error
    if remote.read(manifest) != content:
        raise StateInUseError(f"{remote.address} changes while it is read: use a copy that nobody writes to")


def beginning_of(bases: Sequence[Base]) -> Beginning:
    """Return how the journal of a state with these bases begins."""
    labels: list[BaseLabel] = []
    corrections: list[tuple[int, str]] = []
    after = 0
    for base in bases:
        labels.append(base.label(after))
        for correction in base.journal.log.corrections():
            if correction.sequence is not None and correction.sequence <= base.records:
                detail = written_detail(correction.record, correction.by, correction.at)
                corrections.append((after + correction.sequence, detail))
        after += base.records
    return Beginning(
        bases=labels,
        sequence=after + 1,
        entries=sum(base.entries for base in bases),
        expired_up_to=max(0, bases[0].state.expiry.up_to),
        corrections=corrections,
    )


def begin_pages(base: Base, pages: Path, label: StoreLabel, sequence: int, tail: str) -> None:
    """Make the kept pages of a state that goes on where its first base ended, in `pages`, which is created.

    label, sequence, tail: of its journal, and of its first policy. StateInUseError if the base has changed meanwhile.
    """
    if base.manifest is None:
        return
    with store_errors():
        found = read_commit(base.pages)
        store = base.store()
        if found is None or found[0].number != base.manifest.number or store.manifest.number != found[0].number:
            raise StateInUseError(f"the base {base.name} has changed while it was opened: try again, or use a copy")
        with closing(go_on_from(store, pages, label)) as own:
            own.begin_commit(sequence, tail, base.manifest.note).finish(found[1])


def state_now(pages: Path) -> DeciderState:
    """Return the state of the decider in the last commit in a folder; StoreDamagedError without one."""
    found = read_commit(pages)
    return state_in(b"" if found is None else found[1])
