"""Where the candidates of a page come from.

A decider asks for the entries within the rule's radii, and for those that share a key, and reports which
entries are added and removed. `LocalCandidates` answers from indexes in this process; another `Candidates`
could ask shards elsewhere, and the decider would not change.

Pages that are decided one after the other may be announced as a batch. Then one probe of many fingerprints
and one comparison of all pairs in the batch replace a probe and an insertion for each page. The answers are
the same.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index import BlockIndex, IndexStatistics, KeyIndex, pairs_within
from dedup_service.core.page import CHANNELS, PreparedPage
from dedup_service.core.rules.rule import MatchRule

__all__ = ["Batch", "CandidateSizes", "Candidates", "LocalCandidates"]

Batch = Sequence[tuple[int, PreparedPage]]
"""Pages that are decided next: (sequence, page), ascending."""

_MAX_BY_KEYS = 32
"""Candidates by shared keys, at most: those with the most keys in common, the earliest of equals.

Near-duplicates share several keys. Pages with one sentence in common share one; there may be hundreds.
"""


class Candidates(Protocol):
    """Finds the kept pages that are candidates for a page."""

    def batch(self, batch: Batch) -> AbstractContextManager[None]:
        """Announce a batch: inside, `find` is called for its pages in their order, and for no others."""
        ...

    def find(self, sequence: int, prepared: PreparedPage) -> list[int]:
        """Return the sequences of all entries that are candidates for the page at `sequence`, ascending."""
        ...

    def add(self, entry: Entry) -> None:
        """Add `entry`: it is found from now on."""
        ...

    def remove(self, entry: Entry) -> None:
        """Remove `entry`: it is not found any more."""
        ...


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """Sizes of the indexes. channels: block index by channel. keys: entries and bytes of the key index."""

    channels: dict[str, IndexStatistics]
    keys: tuple[int, int] | None


class LocalCandidates:
    """Indexes in this process: a block index for each channel that `rule` probes, a key index for keys.

    restored: entries to begin with. shards: parts of each block index. In a batch, too, keys are looked up
    one page at a time: which pages of a crowded key are looked at depends on those removed in between.
    """

    def __init__(self, rule: MatchRule, restored: EntryRows, *, shards: int = 1) -> None:
        self._indexes: dict[str, BlockIndex] = {}
        for channel in CHANNELS:
            radius = rule.radius(channel)
            if radius is not None:
                self._indexes[channel] = BlockIndex(radius, shards=shards)
                self._indexes[channel].insert_many(*restored.indexed(channel))
        self._keys: KeyIndex | None = None
        if rule.keys:
            self._keys = KeyIndex(max_found=_MAX_BY_KEYS)
            self._keys.insert_many(*restored.keyed())
        self._batch: _BatchIndex | None = None
        self._keys_read: tuple[bytes, npt.NDArray[np.uint32]] = (b"", Evidence(b"").keys)

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
        return CandidateSizes(channels, None if self._keys is None else (len(self._keys), self._keys.size_bytes))

    def find(self, sequence: int, prepared: PreparedPage) -> list[int]:
        """Return the sequences of all entries that are candidates for the page at `sequence`, ascending."""
        found: set[int] = set()
        if self._keys is not None:
            found.update(self._keys.probe(self._keys_of(prepared.evidence)).tolist())
        if self._batch is not None:
            found.update(self._batch.find(sequence))
        elif prepared.reason is None:
            for channel, index in self._indexes.items():
                value = getattr(prepared.fingerprint, channel)
                if value is not None:
                    found.update(index.probe(value).sequences.tolist())
        return sorted(found)

    def add(self, entry: Entry) -> None:
        """Insert `entry` into the indexes; one that is not `indexed`, into the key index alone."""
        if self._keys is not None:
            self._keys.insert(entry.sequence, self._keys_of(entry.evidence))
        if self._batch is not None and entry.indexed:
            self._batch.fresh[entry.sequence] = entry
            return
        for index, value in self._values(entry):
            index.insert(entry.sequence, value)

    def remove(self, entry: Entry) -> None:
        """Remove `entry` from the indexes."""
        if self._keys is not None:
            self._keys.remove(entry.sequence, self._keys_of(entry.evidence))
        if self._batch is not None:
            self._batch.removed.add(entry.sequence)
            if self._batch.fresh.pop(entry.sequence, None) is not None:
                return
        for index, value in self._values(entry):
            index.remove(entry.sequence, value)

    def _keys_of(self, evidence: bytes) -> npt.NDArray[np.uint32]:
        """Return the keys in `evidence`; a page is looked up and then added, so the last keys are cached."""
        if evidence is not self._keys_read[0]:
            self._keys_read = (evidence, Evidence(evidence).keys)
        return self._keys_read[1]

    def _values(self, entry: Entry) -> list[tuple[BlockIndex, int]]:
        if not entry.indexed:
            return []
        values = ((index, entry.channel(channel)) for channel, index in self._indexes.items())
        return [(index, value) for index, value in values if value is not None]


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
