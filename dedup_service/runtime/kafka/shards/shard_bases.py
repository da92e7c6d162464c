"""The kept pages of a shard whose log goes on from bases: those rows of the bases that are in its slots, copied.

A link would hold the rows of the other shards as well, and images of tables with all of them. So the rows are appended
to a store of the shard's own, as `shard copy` does it, and its tables are built from them.

A base was closed between two pages: entries that were removed just before are still in its cells. The shard has them
too, and removes them where the cells do (`core.shards.shard`).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.log_records import Policy
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.kafka.state.mounted_bases import MountedBases
from dedup_service.runtime.store.manifest import StoreLabel
from dedup_service.runtime.store.page_store import PageStore

_PIECE_ROWS = 1 << 13
"""Rows that are copied at a time: some 4 MB of evidence."""


class ShardBases:
    """What shard `number` has of bases, for its deciding store."""

    def __init__(self, bases: MountedBases, number: ShardNumber) -> None:
        self._bases, self._number = bases, number
        self._removed: list[Entry] = []

    def begun(self, log: str, policy: Policy) -> BasedState:
        """Return what the log begins with. log: its identity. policy: its first one."""
        state = self._bases.begun(log, policy)
        self._removed = [gone.entry for gone in state.decider.removed if gone.entry.settled]
        return state

    def make(self, pages: Path, label: StoreLabel, policy: Policy) -> None:
        """Make the kept pages of the shard before the first record of the log, in the folder `pages`.

        `begun` comes first.
        """
        with closing(PageStore.open(pages, label)) as own:
            with self._bases.pages(label, policy) as store:
                for piece in _pieces(store, self._number, self._removed):
                    own.append(piece)
            own.commit(-1, "")  # without a state, so that it is no snapshot

    def adopt(self, pages: Path) -> None:
        """Do nothing: the rows are the shard's own."""


def _pieces(store: PageStore | None, number: ShardNumber, removed: Sequence[Entry]) -> Iterator[EntryRows]:
    """Yield the rows of a shard with evidence and paths, in order of their sequences. removed: entries among them."""
    entries = EntryRows.from_entries(sorted(removed, key=lambda entry: entry.sequence))
    gone = deque(entries.where(number.owns(entries.rows["ordinal"])).entries())
    for numbers in () if store is None else store.live_numbers():
        for start in range(0, len(numbers), _PIECE_ROWS):
            some = numbers[start : start + _PIECE_ROWS]
            piece = store.entries(some) if store is not None else EntryRows.none()
            piece = piece.where(number.owns(piece.rows["ordinal"]))
            if not len(piece):
                continue
            earlier: list[Entry] = []
            while gone and gone[0].sequence < piece.rows["sequence"][-1]:
                earlier.append(gone.popleft())
            yield EntryRows.in_order([piece, EntryRows.from_entries(earlier)]) if earlier else piece
    if gone:
        yield EntryRows.from_entries([*gone])
