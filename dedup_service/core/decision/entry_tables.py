"""The tables in which settled entries are found: rows by URL, by text, by fingerprint and by keys.

Three hash tables have the hash of the URL, that of title and body, and that of a body long enough to speak for itself;
a block index has each channel that the rule probes; the cells have the keys. All hold rows alone (`entry_store`), so
what is found is confirmed by the row itself. Cells are kept up to date for any rule, so that a rule can change.

Invariant: hash tables and block indexes are a function of the rows in them, the cells of the paths of theirs.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import BODY_HASH, INDEXED, TEXT_HASH, EntryRows, channel_flag
from dedup_service.core.decision.entry_store import EntryStore
from dedup_service.core.evidence.packed import sizes_of, sketches_of
from dedup_service.core.index import BlockIndex, CellRows, HashRows
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.page import CHANNELS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import LONG
from dedup_service.core.rules.rule import MatchRule

__all__ = ["EntryTables"]

RowNumbers = npt.NDArray[np.uint32]


class EntryTables:
    """Empty tables. slots: of the cells."""

    def __init__(self, layout: IndexLayout, *, shards: int = 1) -> None:
        self.urls, self.texts, self.bodies = HashRows(), HashRows(), HashRows()
        self.cells = CellRows(slots=layout.slots)
        self.indexes: dict[str, BlockIndex] = {}
        self._shards = shards

    def sizes(self) -> dict[str, int]:
        """Return the bytes of memory of each table."""
        cells = self.cells.statistics()
        return {
            "cells": cells.bytes - cells.sieve_bytes,
            "sieves": cells.sieve_bytes,
            **{f"blocks_{channel}": index.statistics().bytes for channel, index in self.indexes.items()},
            "urls": self.urls.size_bytes,
            "texts": self.texts.size_bytes,
            "bodies": self.bodies.size_bytes,
        }

    def probe_for(self, rule: MatchRule, store: EntryStore) -> None:
        """Have the block indexes that a rule probes, and no others; a new one is built from the store."""
        radii = {channel: radius for channel in CHANNELS if (radius := rule.radius(channel)) is not None}
        self.indexes = {channel: index for channel, index in self.indexes.items() if radii.get(channel) == index.radius}
        new = {
            channel: BlockIndex(radius, shards=self._shards, rows=True)
            for channel, radius in radii.items()
            if channel not in self.indexes
        }
        if new and len(store):
            for numbers, entries in store.live_pieces():
                for channel, index in new.items():
                    _insert(index, channel, numbers, entries)
        self.indexes = {channel: (self.indexes | new)[channel] for channel in radii}

    def add(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Add live rows to all tables but the cells, which take theirs with the pages (`CellRows.follow`)."""
        for table, mask, hashes in self._hashes(entries):
            table.add_many(hashes[mask], numbers[mask])
        for channel, index in self.indexes.items():
            _insert(index, channel, numbers, entries)

    def remove(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Remove rows from all tables but the cells."""
        for table, mask, hashes in self._hashes(entries):
            table.remove_many(hashes[mask], numbers[mask])
        for channel, index in self.indexes.items():
            mask = _indexed(entries, channel)
            index.remove_many(numbers[mask].astype(np.int64), entries.rows[channel][mask].astype(np.uint64))

    def restore(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Add live, settled rows to all tables, in which they were before."""
        self.add(numbers, entries)
        self.restore_cells(numbers, entries)

    def restore_cells(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Put settled rows back into the cells alone."""
        if not len(numbers):
            return
        data, rows = np.frombuffer(entries.evidence, np.uint8), entries.rows
        own = rows["evidence_bytes"].astype(np.int64) - rows["keys_bytes"]
        sieves = sketches_of(data, entries.evidence_starts, own, SIEVE_BYTES).view(np.uint64)
        ends = entries.evidence_starts + rows["evidence_bytes"]
        pairs = zip((entries.evidence_starts + own).tolist(), ends.tolist(), strict=True)
        paths = b"".join([entries.evidence[start:end] for start, end in pairs])
        self.cells.restore(numbers, rows["ordinal"].astype(np.int64), sieves, paths)

    def _hashes(self, entries: EntryRows) -> Iterable[tuple[HashRows, npt.NDArray[np.bool_], npt.NDArray[np.uint64]]]:
        """Yield the hash tables, which entries belong in each, and their hashes there."""
        rows = entries.rows
        own = rows["evidence_bytes"].astype(np.int64) - rows["keys_bytes"]
        sizes = sizes_of(np.frombuffer(entries.evidence, np.uint8), entries.evidence_starts, own)
        flags: npt.NDArray[np.uint8] = rows["flags"]
        columns: Mapping[str, npt.NDArray[np.uint64]] = {
            name: rows[name].astype(np.uint64) for name in ("url_hash", "text_hash", "body_hash")
        }
        yield self.urls, np.ones(len(rows), np.bool_), columns["url_hash"]
        yield self.texts, (flags & TEXT_HASH) != 0, columns["text_hash"]
        yield self.bodies, ((flags & BODY_HASH) != 0) & (sizes >= LONG), columns["body_hash"]


def _indexed(entries: EntryRows, channel: str) -> npt.NDArray[np.bool_]:
    required = np.uint8(INDEXED | channel_flag(channel))
    mask: npt.NDArray[np.bool_] = (entries.rows["flags"] & required) == required
    return mask


def _insert(index: BlockIndex, channel: str, numbers: RowNumbers, entries: EntryRows) -> None:
    mask = _indexed(entries, channel)
    index.insert_many(numbers[mask].astype(np.int64), entries.rows[channel][mask].astype(np.uint64))
