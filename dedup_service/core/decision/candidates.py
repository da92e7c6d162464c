"""Where the candidates of a page come from.

A decider asks for the entries that may match a page, and reports which entries are added and removed.
`LocalCandidates` answers from indexes in this process; another `Candidates` could ask shards elsewhere, and
the decider would not change.

Four sources, each complete within its definition:

- equal texts: every entry with the same text hash, or, of a text long enough to speak for itself, with the
  same body hash (the earliest `_MAX_EQUAL` of them);
- block indexes: every entry within the radius of a channel, if the rule has one;
- cells (`core.index.cell_index`): entries that share min-hash keys, if the rule uses keys. Cells change
  exactly `window` pages behind the log: a page is probed against the cells as they were after the outcome of
  the page that many places before it;
- the window (`core.decision.window`): the pages in between, compared one by one.

The ordinal of a page is the number of pages decided before it; with it, every answer is a function of the
log, not of how it was cut into batches or where it was continued.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryPieces
from dedup_service.core.decision.matching import body_decides, min_rough_jaccard
from dedup_service.core.decision.window import Window
from dedup_service.core.evidence.overlap import NONE_COMMON
from dedup_service.core.evidence.packed import Evidence, sketch_of
from dedup_service.core.index import BlockIndex, CellIndex, CellStatistics, IndexStatistics, SequenceMap, pairs_within
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.page import CHANNELS, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule

__all__ = ["Batch", "CandidateSizes", "Candidates", "EntryLookup", "LocalCandidates", "RemovedEntry"]

Batch = Sequence[tuple[int, PreparedPage]]
"""Pages that are decided next: (sequence, page), ascending."""

EntryLookup = Callable[[int], Entry | None]
"""Returns the live entry of a sequence, or None."""

_MAX_EQUAL = 64
"""Entries with one text, at most: copies are not kept, so there are more only where pages were updated to it."""

_NO_SIEVE = bytes(SIEVE_BYTES)

Settled = list[tuple[int, bytes]]
"""Entries that have left the window, with their paths through the cells."""


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was removed when `ordinal` was the latest page, and that the cells still need."""

    ordinal: int
    entry: Entry


class Candidates(Protocol):
    """Finds the kept pages that are candidates for a page."""

    def batch(self, batch: Batch) -> AbstractContextManager[None]:
        """Announce a batch: inside, `find` is called for its pages in their order, and for no others."""
        ...

    def begin(self, ordinal: int) -> Settled:
        """Announce the page with this ordinal; return the entries that have left the window."""
        ...

    def find(
        self, sequence: int, prepared: PreparedPage, evidence: Evidence, common: npt.NDArray[np.uint32] = NONE_COMMON
    ) -> list[int]:
        """Return the sequences of entries that are candidates for the page at `sequence`, ascending.

        evidence: of the page. common: those of its sentences that are the own text of its host, ascending:
        uint32[n]. Entries that were removed lately may be among the candidates.
        """
        ...

    def equal_texts(self, prepared: PreparedPage, entry_at: EntryLookup) -> list[int]:
        """Return the sequences of entries with the same text as a page, the earliest of each hash, ascending.

        entry_at: returns the live entry of a sequence, by which a proposal is confirmed.
        """
        ...

    def add(self, entry: Entry, evidence: Evidence) -> None:
        """Add `entry` with its evidence: it is found from now on."""
        ...

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove `entry`, as an effect of the page with this ordinal or of a record after it."""
        ...

    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries that the cells still need, in the order of their removal."""
        ...


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """Sizes of the indexes. channels: block index by channel. cells: of the cell index."""

    channels: dict[str, IndexStatistics]
    cells: CellStatistics


class LocalCandidates:
    """Indexes in this process.

    rule: which sources are asked. The cells are kept up to date for any rule, so that a rule can change.
    restored: live entries to begin with; those that are not settled are in the window. removed: entries that
    the cells still need. shards: parts of each block index.
    """

    def __init__(
        self,
        rule: MatchRule,
        restored: EntryPieces = (),
        *,
        layout: IndexLayout | None = None,
        removed: Sequence[RemovedEntry] = (),
        shards: int = 1,
    ) -> None:
        self._rule, self._min_jaccard = rule, min_rough_jaccard(rule)
        self._layout = layout or IndexLayout()
        self._indexes: dict[str, BlockIndex] = {}
        for channel in CHANNELS:
            radius = rule.radius(channel)
            if radius is not None:
                self._indexes[channel] = BlockIndex(radius, shards=shards)
                self._indexes[channel].insert_many(*_indexed(restored, channel))
        self._texts, self._bodies = SequenceMap(), SequenceMap()
        self._cells, self._window = CellIndex(slots=self._layout.slots), Window()
        self._added: deque[Entry] = deque()
        self._removed: deque[RemovedEntry] = deque()
        self._paths: dict[int, bytes] = {}
        self._batch: _BatchIndex | None = None
        self.last_candidates = self.last_read = 0
        self._restore(restored, removed)

    @contextmanager
    def batch(self, batch: Batch) -> Iterator[None]:
        """Announce a batch: inside, `find` is called for its pages in their order, and for no others."""
        self._batch = _BatchIndex(self._indexes, batch)
        try:
            yield
        finally:
            fresh, self._batch = self._batch.fresh, None
            for channel, index in self._indexes.items():
                added = [
                    (sequence, value)
                    for sequence, entry in fresh.items()
                    if (value := entry.channel(channel)) is not None
                ]
                sequences, values = zip(*added, strict=True) if added else ((), ())
                index.insert_many(np.array(sequences, np.int64), np.array(values, np.uint64))

    def sizes(self) -> CandidateSizes:
        """Return the sizes of the indexes; takes about 1 ms."""
        channels = {channel: index.statistics() for channel, index in self._indexes.items()}
        return CandidateSizes(channels, self._cells.statistics())

    def begin(self, ordinal: int) -> Settled:
        """Announce the page with this ordinal; return the entries that have left the window."""
        due = ordinal - self._layout.window
        settled: Settled = []
        while True:
            adds = bool(self._added) and self._added[0].ordinal <= due
            removes = bool(self._removed) and self._removed[0].ordinal <= due
            # What one page did is applied in this order: its own entry, then the removals.
            if adds and not (removes and self._removed[0].ordinal < self._added[0].ordinal):
                entry = self._added.popleft()
                path = self._cells.insert(entry.sequence, entry.ordinal, entry.keys, _sieve(entry.evidence))
                settled.append((entry.sequence, path))
                if entry.sequence in self._paths:
                    self._paths[entry.sequence] = path
            elif removes:
                gone = self._removed.popleft().entry
                path = self._paths.pop(gone.sequence, gone.keys)
                self._cells.remove(gone.sequence, gone.ordinal, path)
            else:
                break
        self._window.leave(due)
        return settled

    def find(
        self, sequence: int, prepared: PreparedPage, evidence: Evidence, common: npt.NDArray[np.uint32] = NONE_COMMON
    ) -> list[int]:
        """Return the sequences of entries that are candidates for the page at `sequence`, ascending.

        Sets `last_candidates`, how many entries were looked at in tables, and `last_read`, how many are returned.
        """
        found: set[int] = set()
        looked_at = 0
        if self._batch is not None:
            near = self._batch.find(sequence)
            looked_at += len(near)
            found.update(near)
        elif prepared.reason is None:
            for channel, index in self._indexes.items():
                value = getattr(prepared.fingerprint, channel)
                if value is not None:
                    near = index.probe(value).sequences.tolist()
                    looked_at += len(near)
                    found.update(near)
        if self._rule.keys and prepared.keys and evidence.shingles:
            found.update(self._cells.probe(prepared.keys, evidence.sketch[:SIEVE_BYTES]).tolist())
            passed, young = self._window.find(evidence, common, self._min_jaccard)
            found.update(young.tolist())
            looked_at += self._cells.probed + passed
        self.last_candidates, self.last_read = looked_at, len(found)
        return sorted(found)

    def add(self, entry: Entry, evidence: Evidence) -> None:
        """Add `entry` with its evidence: it is found from now on. One that is not `indexed` is in no block index."""
        self._added.append(entry)
        self._window.add(entry, evidence)
        for texts, value in self._text_hashes(entry):
            texts.add(value, entry.sequence)
        if self._batch is not None and entry.indexed:
            self._batch.fresh[entry.sequence] = entry
            return
        for index, value in self._values(entry):
            index.insert(entry.sequence, value)

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove `entry`; the cells lose it when the page with this ordinal leaves the window."""
        self._removed.append(RemovedEntry(ordinal, entry))
        if not entry.settled:
            self._paths[entry.sequence] = b""
        self._window.remove(entry.sequence)
        for texts, value in self._text_hashes(entry):
            texts.remove(value, entry.sequence)
        if self._batch is not None:
            self._batch.removed.add(entry.sequence)
            if self._batch.fresh.pop(entry.sequence, None) is not None:
                return
        for index, value in self._values(entry):
            index.remove(entry.sequence, value)

    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries that the cells still need, in the order of their removal."""
        return [
            RemovedEntry(gone.ordinal, replace(gone.entry, keys=path, settled=True) if path else gone.entry)
            for gone in self._removed
            for path in (self._paths.get(gone.entry.sequence),)
        ]

    def equal_texts(self, prepared: PreparedPage, entry_at: EntryLookup) -> list[int]:
        """Return the sequences of entries with the same text as a page, the earliest of each hash, ascending.

        entry_at: returns the live entry of a sequence, by which a proposal is confirmed.
        """
        found: set[int] = set()
        for texts, value in self._text_hashes(prepared):
            found.update(texts.some(value, _MAX_EQUAL, partial(self._has_text, texts, value, entry_at)))
        return sorted(found)

    def _has_text(self, texts: SequenceMap, value: int, entry_at: EntryLookup, sequence: int) -> bool:
        """Whether an entry has this hash in one of the tables of texts."""
        entry = entry_at(sequence)
        return entry is not None and value == (entry.text_hash if texts is self._texts else entry.body_hash)

    def _text_hashes(self, page: Entry | PreparedPage) -> list[tuple[SequenceMap, int]]:
        """Return the tables in which a page is looked up by its text, each with its hash there."""
        hashes = []
        if page.text_hash is not None:
            hashes.append((self._texts, page.text_hash))
        if page.body_hash is not None and body_decides(page.evidence):
            hashes.append((self._bodies, page.body_hash))
        return hashes

    def _values(self, entry: Entry) -> list[tuple[BlockIndex, int]]:
        if not entry.indexed:
            return []
        values = ((index, entry.channel(channel)) for channel, index in self._indexes.items())
        return [(index, value) for index, value in values if value is not None]

    def _restore(self, restored: EntryPieces, removed: Sequence[RemovedEntry]) -> None:
        """Fill texts, cells and window. removed: in the order of their removal."""
        unsettled: list[Entry] = []
        settled: list[_CellRows] = []
        for piece in restored:
            placing = _Placing(unsettled)
            for entry in piece.entries():
                placing.add(entry)
                for texts, value in self._text_hashes(entry):
                    texts.add(value, entry.sequence)
            settled.append(placing.settled())
        placing = _Placing(unsettled)
        for gone in removed:
            placing.add(gone.entry)
            self._removed.append(gone)
            if not gone.entry.settled:
                self._paths[gone.entry.sequence] = b""
        settled.append(placing.settled())
        self._cells.restore(
            np.concatenate([some.sequences for some in settled]),
            np.concatenate([some.ordinals for some in settled]),
            np.concatenate([some.sieves for some in settled]),
            b"".join(some.paths for some in settled),
        )
        for entry in sorted(unsettled, key=lambda entry: entry.ordinal):
            self._added.append(entry)
            if entry.sequence not in self._paths:
                self._window.add(entry, Evidence(entry.evidence))


@dataclass(frozen=True, slots=True, eq=False)
class _CellRows:
    """What the cells need of n settled entries. sequences, ordinals: int64[n]; sieves: uint64[n, words]."""

    sequences: npt.NDArray[np.int64]
    ordinals: npt.NDArray[np.int64]
    sieves: npt.NDArray[np.uint64]
    paths: bytes


class _Placing:
    """Sorts restored entries into settled ones, packed at once, and `unsettled` ones, which are added there."""

    def __init__(self, unsettled: list[Entry]) -> None:
        self._unsettled = unsettled
        self._settled: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        (self._settled if entry.settled else self._unsettled).append(entry)

    def settled(self) -> _CellRows:
        """Return the settled entries."""
        sieves = b"".join(_sieve(entry.evidence) for entry in self._settled)
        return _CellRows(
            np.array([entry.sequence for entry in self._settled], np.int64),
            np.array([entry.ordinal for entry in self._settled], np.int64),
            np.frombuffer(sieves, np.uint64).reshape(-1, SIEVE_BYTES // 8),
            b"".join(entry.keys for entry in self._settled),
        )


def _indexed(pieces: EntryPieces, channel: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return (sequences, fingerprints) of all entries that the block index of `channel` has."""
    parts = [piece.indexed(channel) for piece in pieces]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    sequences, fingerprints = zip(*parts, strict=True)
    return np.concatenate(sequences), np.concatenate(fingerprints)


def _sieve(evidence: bytes) -> bytes:
    sketch = sketch_of(evidence, SIEVE_BYTES)
    return sketch if len(sketch) == SIEVE_BYTES else _NO_SIEVE


class _BatchIndex:
    """The pages of a batch: entries near each of them before the batch, and pages near each other.

    fresh: entries added since the batch began, by sequence; removed: sequences removed since then.
    """

    def __init__(self, indexes: dict[str, BlockIndex], batch: Batch) -> None:
        self.fresh: dict[int, Entry] = {}
        self.removed: set[int] = set()
        self._before: dict[int, set[int]] = {}
        self._among: dict[int, set[int]] = {}
        for channel, index in indexes.items():
            pages = [
                (sequence, value)
                for sequence, page in batch
                if page.reason is None and (value := getattr(page.fingerprint, channel)) is not None
            ]
            if pages:
                sequences = np.array([sequence for sequence, _ in pages], np.int64)
                values = np.array([value for _, value in pages], np.uint64)
                self._find_before(index, sequences, values)
                self._find_among(index.radius, sequences, values)

    def find(self, sequence: int) -> list[int]:
        """Return the sequences of the present entries near a page of the batch, ascending."""
        before, among = self._before.get(sequence), self._among.get(sequence)
        if before is None and among is None:  # most pages have neither
            return []
        return sorted(((before or set()) - self.removed) | {page for page in among or () if page in self.fresh})

    def _find_before(self, index: BlockIndex, sequences: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> None:
        found = index.probe_many(values)
        for query in np.flatnonzero(np.diff(found.offsets)).tolist():
            entries = found.sequences[found.offsets[query] : found.offsets[query + 1]]
            self._before.setdefault(int(sequences[query]), set()).update(entries.tolist())

    def _find_among(self, radius: int, sequences: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> None:
        later, earlier = (sequences[places].tolist() for places in pairs_within(values, radius))
        for page, before in zip(later, earlier, strict=True):
            self._among.setdefault(page, set()).add(before)
