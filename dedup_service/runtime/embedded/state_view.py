"""What a state folder holds at one moment, while another process may write to it: its kept pages and hosts' own text.

Nothing is locked and nothing is written. A view is made of the last commit of the kept pages, which is opened first,
and of a read transaction on the journal, which is at least as new; so what the journal has left to the pages
(`evidence`) is in that commit. If a commit came between the two and more was left, both are opened again.

Entries that leave the index after that are there, unless they are taken down: the writer leaves them in their place.

No tables are built: what changed after the commit is read from the journal, as `restore` does, but without a decider.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dedup_service._native import Entry, HostText, PageStore, StoreLabel
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import entry_of_page
from dedup_service.core.decision.entry_store import HeldEntries, HeldValues, bytes_of
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.url import host_hash, url_hash
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.database import Database, StateDamagedError
from dedup_service.runtime.embedded.journal import Header, require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.restore import misfit, state_in
from dedup_service.runtime.embedded.state import PAGES_FOLDER
from dedup_service.runtime.embedded.state_info import open_read_only
from dedup_service.runtime.store.page_files import open_pages
from dedup_service.runtime.store.stored_entries import live_pieces

_ATTEMPTS = 8


@dataclass(slots=True)
class _After:
    """What changed after the commit. added: entries by sequence. removed: sequences."""

    host_text: HostText
    added: dict[int, Entry] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)


class StateView:
    """The state of a journal that is read in an open transaction. pages: None before the first commit."""

    def __init__(self, folder: Path, database: Database, header: Header, pages: PageStore | None) -> None:
        self.database = database
        self.header = header
        self._folder = folder
        self.log = JournalReader(database, header.space_id)
        self._pages = pages
        self._extra = b"" if pages is None else pages.take_extra()
        self._since = pages.manifest.sequence if pages is not None and self._extra else 0
        self._expired_up_to = self.log.counter("expired_up_to")

    def host_text(self) -> HostText:
        """Return what is known of the hosts' own text."""
        return self._after.host_text

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        if not self._is_live(sequence):
            return None
        if sequence in self._after.added:
            return self._after.added[sequence]
        return self.committed(sequence)

    def committed(self, sequence: int) -> Entry | None:
        """Return the entry that the page at `sequence` has in the commit, or None; it may have left the index since."""
        row = None if self._pages is None else self._pages.find(sequence)
        if self._pages is None or row is None:
            return None
        with store_errors():
            return next(iter(self._pages.entries([row])), None)

    def held(self) -> HeldEntries:
        """Return the live entries."""
        added = tuple(entry for entry in self._after.added.values() if self._is_live(entry.sequence))
        return HeldEntries((_HeldRows(self), HeldValues(added)))

    def has_row(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry of the commit."""
        row = None if self._pages is None else self._pages.find(sequence)
        return row is not None and bool(self._rows([row]))

    def live_rows(self) -> Iterator[list[Entry]]:
        """Yield the live entries of the commit."""
        if self._pages is None:
            return
        for numbers in live_pieces(self._pages):
            yield self._rows(numbers)

    def close(self) -> None:
        """Close the pages."""
        if self._pages is not None:
            self._pages.close()

    @cached_property
    def _state(self) -> DeciderState:
        with store_errors():
            return state_in(self._extra) if self._extra else DeciderState()

    @cached_property
    def _after(self) -> _After:
        after = _After(HostText(self._state.host_text), {entry.sequence: entry for entry in self._state.young})
        for record in self.log.records_after(self._since):
            if record.removes is not None:
                after.removed.add(record.removes)
            page = record.prepared
            if page is None:
                continue
            address = page.page.canonical_url
            evidence = Evidence(page.evidence)
            sentences = evidence.sentence_values
            if sentences:
                after.host_text.learn(host_hash(address), evidence.terms, page.keys, sentences)
            if record.kept:
                after.added[record.sequence] = entry_of_page(record.sequence, page, url_hash(address))
        return after

    def _is_live(self, sequence: int) -> bool:
        return sequence > self._expired_up_to and sequence not in self._after.removed

    def _rows(self, numbers: Sequence[int]) -> list[Entry]:
        """Return those of some live rows of the commit that are live in the journal, which the commit speaks for."""
        assert self._pages is not None
        with store_errors():
            entries = self._pages.entries(numbers)
        return [one for one in entries if self._is_live(one.sequence) and one.sequence not in self._after.added]


@dataclass(frozen=True, slots=True, eq=False)
class _HeldRows:
    """The live entries of the commit, as a part of a view."""

    view: StateView

    def pieces(self) -> Iterator[list[Entry]]:
        """Yield them, in order of sequence."""
        return self.view.live_rows()

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` is among them."""
        return self.view.has_row(sequence)

    def size(self) -> tuple[int, int]:
        """Return their number and the bytes of their evidence."""
        sizes = [(len(piece), bytes_of(piece)) for piece in self.view.live_rows()]
        return sum(number for number, _ in sizes), sum(size for _, size in sizes)


@contextmanager
def state_view(folder: Path) -> Iterator[StateView]:
    """Yield a view of the state in `folder`.

    StateError if the folder has no state; StateDamagedError if journal and pages do not fit.
    """
    database = open_read_only(folder)
    try:
        for attempt in range(_ATTEMPTS):
            pages = _pages(folder, database)
            with database.reading():
                header = require_header(database.connection, database.path)
                view = StateView(folder, database, header, pages)
                try:
                    reason = _misfit(pages, header, database)
                    if reason is None:
                        yield view
                        return
                finally:
                    view.close()
            if attempt + 1 == _ATTEMPTS:
                raise StateDamagedError(f"the kept pages in {folder / PAGES_FOLDER} do not fit the journal: {reason}")
    finally:
        database.close()


def _pages(folder: Path, database: Database) -> PageStore | None:
    with database.reading(), store_errors():
        header = require_header(database.connection, database.path)
        return open_pages(folder / PAGES_FOLDER, StoreLabel(header.identity, header.space_id), held=True)


def _misfit(pages: PageStore | None, header: Header, database: Database) -> str | None:
    log = JournalReader(database, header.space_id)
    if pages is None:
        return "they are missing" if log.counter("evidence_moved") else None
    return misfit(pages.manifest, header.identity, log, log.last_sequence())
