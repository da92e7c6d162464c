"""Where candidates come from: the one thing a decision does not do itself.

A decision asks for the entries within the rule's radii and says which entries come and go. `LocalCandidates`
answers from block indexes in this process; shards elsewhere can answer instead, and the decision does not change.

Pages that are decided one after the other may be announced together: then one probe of many fingerprints and one
comparison of all pairs among them stand for a probe and an insertion each. The answers are the same.
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
"""Pages to come, by sequence, ascending."""


_VERIFIED = 32
"""Of the pages that share a key those with most keys in common, the earliest of equals: near-duplicates share several,
pages with one sentence in common share one, and there may be hundreds."""


class Candidates(Protocol):
    """Whoever finds the kept pages near a fingerprint."""

    def batch(self, batch: Batch) -> AbstractContextManager[None]:
        """Inside, the announced pages are asked for in their order, and no others."""
        ...

    def near(self, sequence: int, prepared: PreparedPage) -> list[int]:
        """Return the sequences of all entries that are candidates for the page at `sequence`, ascending."""
        ...

    def add(self, entry: Entry) -> None:
        """Find `entry` from now on."""
        ...

    def remove(self, entry: Entry) -> None:
        """Do not find `entry` any more."""
        ...


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """The indexes at one moment. channels: block index by channel. keys: entries and bytes of the index of keys."""

    channels: dict[str, IndexStatistics]
    keys: tuple[int, int] | None


class LocalCandidates:
    """Block indexes in this process, one for each channel that `rule` probes, and one of keys where it has them.

    shards: parts of each block index. Keys are looked up one page at a time, also of pages announced together: what
    of a crowded key is looked at depends on who left in between.
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
            self._keys = KeyIndex(best=_VERIFIED)
            self._keys.insert_many(*restored.keyed())
        self._batch: _BatchIndex | None = None
        self._read: tuple[bytes, npt.NDArray[np.uint32]] = (b"", Evidence(b"").keys)

    @contextmanager
    def batch(self, batch: Batch) -> Iterator[None]:
        """Inside, the announced pages are asked for in their order, and no others."""
        self._batch = _BatchIndex(self._indexes, batch)
        try:
            yield
        finally:
            fresh, self._batch = self._batch.fresh, None
            for channel, index in self._indexes.items():
                added = [(at, value) for at, entry in fresh.items() if (value := entry.channel(channel)) is not None]
                sequences, values = zip(*added, strict=True) if added else ((), ())
                index.insert_many(np.array(sequences, np.int64), np.array(values, np.uint64))

    def sizes(self) -> CandidateSizes:
        """Return how the indexes stand; takes about 1 ms."""
        channels = {channel: index.statistics() for channel, index in self._indexes.items()}
        return CandidateSizes(channels, None if self._keys is None else (len(self._keys), self._keys.size_bytes))

    def near(self, sequence: int, prepared: PreparedPage) -> list[int]:
        """Return the sequences of all entries that are candidates for the page at `sequence`, ascending."""
        near: set[int] = set()
        if self._keys is not None:
            near.update(self._keys.probe(self._keys_of(prepared.evidence)).tolist())
        if self._batch is not None:
            near.update(self._batch.near(sequence))
        elif prepared.reason is None:
            for channel, index in self._indexes.items():
                value = getattr(prepared.fingerprint, channel)
                if value is not None:
                    near.update(index.probe(value).sequences.tolist())
        return sorted(near)

    def add(self, entry: Entry) -> None:
        """Insert what `entry` has into the indexes; of one too short to be judged by distance only its keys."""
        if self._keys is not None:
            self._keys.insert(entry.sequence, self._keys_of(entry.evidence))
        if self._batch is not None and entry.indexed:
            self._batch.fresh[entry.sequence] = entry
            return
        for index, value in self._values(entry):
            index.insert(entry.sequence, value)

    def remove(self, entry: Entry) -> None:
        """Take `entry` out of the indexes."""
        if self._keys is not None:
            self._keys.remove(entry.sequence, self._keys_of(entry.evidence))
        if self._batch is not None:
            self._batch.gone.add(entry.sequence)
            if self._batch.fresh.pop(entry.sequence, None) is not None:
                return
        for index, value in self._values(entry):
            index.remove(entry.sequence, value)

    def _keys_of(self, evidence: bytes) -> npt.NDArray[np.uint32]:
        """Return the keys in `evidence`; a page is asked for and then added, and they are read once."""
        if evidence is not self._read[0]:
            self._read = (evidence, Evidence(evidence).keys)
        return self._read[1]

    def _values(self, entry: Entry) -> list[tuple[BlockIndex, int]]:
        if not entry.indexed:
            return []
        values = ((index, entry.channel(channel)) for channel, index in self._indexes.items())
        return [(index, value) for index, value in values if value is not None]


class _BatchIndex:
    """Batch pages: what stood near each at the beginning, and which of them are near each other.

    fresh: entries that came since the beginning, by sequence; gone: sequences that left.
    """

    def __init__(self, indexes: dict[str, BlockIndex], batch: Batch) -> None:
        self.fresh: dict[int, Entry] = {}
        self.gone: set[int] = set()
        self._before: dict[int, set[int]] = {}
        self._among: dict[int, set[int]] = {}
        for channel, index in indexes.items():
            pages = [
                (at, value)
                for at, page in batch
                if page.reason is None and (value := getattr(page.fingerprint, channel)) is not None
            ]
            if pages:
                sequences = np.array([at for at, _ in pages], np.int64)
                values = np.array([value for _, value in pages], np.uint64)
                self._look_back(index, sequences, values)
                self._look_around(index.radius, sequences, values)

    def near(self, sequence: int) -> list[int]:
        """Return the entries near an announced page that are there now, ascending."""
        before, among = self._before.get(sequence), self._among.get(sequence)
        if before is None and among is None:  # most pages
            return []
        return sorted(((before or set()) - self.gone) | {at for at in among or () if at in self.fresh})

    def _look_back(self, index: BlockIndex, sequences: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> None:
        found = index.probe_many(values)
        for place in np.flatnonzero(np.diff(found.offsets)).tolist():
            entries = found.sequences[found.offsets[place] : found.offsets[place + 1]]
            self._before.setdefault(int(sequences[place]), set()).update(entries.tolist())

    def _look_around(self, radius: int, sequences: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> None:
        later, earlier = (sequences[places].tolist() for places in pairs_within(values, radius))
        for page, before in zip(later, earlier, strict=True):
            self._among.setdefault(page, set()).add(before)
