"""The entries of a decider on disk: the native `PageStore`, and the tables that are built from it.

    entries = StoredEntries.open(folder, label, rule, layout)
    decider = Decider(rule, space_id, names, entries=entries, state=state, …)
    ...                                                    # after each batch:
    entries.step()                                         # raises what another thread has found
    entries.begin_commit(sequence, tail, extra, sizes)     # returns what waits for the disk, in any thread

The tables are built from the rows at each opening; the decider takes them.

Other threads may iterate what `held` returned, after `close`, too: that raises StateError. Damage that they find is
raised by the next `step` as well. As long as it lives, removed rows keep their space. Everything else is for the
deciding thread.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

from dedup_service._native import Entry, PageStore, PendingCommit, Rule, StoreLabel, TablesBuild
from dedup_service.core.decision.decider import CandidateSizes
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_files import StoreSizes, open_or_create

_PIECE_ROWS = 1 << 13
"""Rows that an export reads at a time: some 4 MB of evidence."""

Report = Callable[[str, int, int], None]
"""Progress of something long: (what, done, total); total is 0 where it is not known."""

Finish = Callable[[], None]
"""Makes a commit durable; any thread may call it, before the folder is opened again. A second call does nothing."""

_STEP_ROWS = 1 << 18
"""Rows that enter the tables between two reports."""


def live_pieces(store: PageStore, size: int = _PIECE_ROWS) -> Iterator[list[int]]:
    """Yield the numbers of live rows, ascending, so many at a time; the disk is asked for them."""
    first = 0
    while numbers := store.live_rows(first, size):
        first = numbers[-1] + 1
        yield numbers


def pieces_of(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield entries some at a time, as a store takes them."""
    left = iter(entries)
    while piece := list(islice(left, _PIECE_ROWS)):
        yield piece


class StoredEntries:
    """The entries in a folder. Use `open`."""

    def __init__(self, store: PageStore, tables: TablesBuild, extra: bytes) -> None:
        self.pages = store
        self.tables = tables
        self._extra = extra
        self._turn = threading.RLock()
        self._damage: StoreDamagedError | None = None
        self._is_closed = False

    @classmethod
    def open(
        cls,
        folder: Path,
        label: StoreLabel,
        rule: MatchRule,
        layout: IndexLayout,
        *,
        report: Report = lambda *_: None,
    ) -> Self:
        """Open the entries in `folder`, with the tables that a rule needs, or begin with none.

        Raises as `open_pages`, and StoreDamagedError if rows are altered.
        """
        store = open_or_create(folder, label)
        try:
            return cls(store, _built(store, rule, layout, report), store.take_extra())
        except BaseException:
            store.close()
            raise

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def sequence(self) -> int:
        """The sequence of the last finished commit, 0 before any."""
        return self.pages.manifest.sequence

    def take_extra(self) -> bytes:
        """Return what the commit that was opened had beside the rows; nothing when it is called again."""
        extra, self._extra = self._extra, b""
        return extra

    def held(self) -> HeldEntries:
        """Return a view of the rows that are live now, but without those that are erased before they are read."""
        return HeldEntries((_HeldRows(self, self.pages.view()),))

    def step(self) -> None:
        """Raise StoreDamagedError if a thread that iterates what `held` returned has found damage."""
        if self._damage is not None:
            raise self._damage

    def compact(self, begin: Callable[[], Finish], report: Report) -> None:
        """Give back the space of all dead rows; waits for the disk. begin: begins a commit of the present state.

        After that, no file has a page that left the index before, but for those that a view has. StoreFullError if the
        disk is full.
        """
        report("kept pages", 0, 0)
        begin()()
        begin()()  # with the first one, the store knows which rows no commit has any more
        self.pages.compact()

    def begin_commit(
        self, sequence: int, tail: str, extra: bytes | Callable[[], bytes], sizes: CandidateSizes | StoreSizes
    ) -> Finish:
        """Note the present state; what is returned makes it durable.

        sequence, tail: last record of the log, and its digest. extra: other state, or what is called for it then.
        sizes: of the decider, for those in the manifest.
        """
        if isinstance(sizes, CandidateSizes):
            sizes = StoreSizes(sizes.memory, len(self.pages), sizes.cells.cells, sizes.cells.overflowed)
        return partial(_finish, self.pages.begin_commit(sequence, tail, sizes.note()), extra)

    def erase(self, sequence: int) -> None:
        """Overwrite a page with zeros, durably, if there is anything of it; it has no live entry."""
        row = self.pages.find_kept(sequence)
        if row is not None:
            self.pages.erase([row])

    def close(self) -> None:
        """Close all files. What was not committed is lost."""
        with self._turn:
            self._is_closed = True
            self.pages.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read a view in any thread; `close` waits."""
        with self._turn:
            if self._is_closed:
                raise StateError("the kept pages are closed: they cannot be read any more; ask a process that runs")
            try:
                yield
            except StoreDamagedError as error:
                self._damage = error
                raise


@dataclass(frozen=True, slots=True, eq=False)
class _HeldRows:
    """The rows that were live when `pages` was made."""

    entries: StoredEntries
    pages: PageStore

    def pieces(self) -> Iterator[list[Entry]]:
        """Yield the entries, in order of sequence."""
        for numbers in live_pieces(self.pages):
            with self.entries.reading():
                piece = self.pages.entries(numbers)
            yield piece

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has an entry among them."""
        with self.entries.reading():
            row = self.pages.find(sequence)
            return row is not None and bool(self.pages.entries([row]))

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        with self.entries.reading():
            return len(self.pages), self.pages.sizes()[0]


def _finish(pending: PendingCommit, extra: bytes | Callable[[], bytes]) -> None:
    pending.finish(extra if isinstance(extra, bytes) else extra())


def _built(store: PageStore, rule: MatchRule, layout: IndexLayout, report: Report) -> TablesBuild:
    """Return the tables of the live rows of a store."""
    build = TablesBuild(store, Rule(rule), layout.slots, LEVELS, len(os.sched_getaffinity(0)))
    done, total = 0, len(store)
    while done < len(store):
        done = build.step(_STEP_ROWS)
        report("building tables", done, total)
    return build
