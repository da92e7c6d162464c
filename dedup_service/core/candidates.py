"""Where candidates come from: the one thing a decision does not do itself.

A decision asks for the entries within the rule's radii and says which entries come and go. `LocalCandidates`
answers from block indexes in this process; shards elsewhere can answer instead, and the decision does not change.
"""

from typing import Protocol

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows
from dedup_service.core.fingerprint import CHANNELS, Fingerprint
from dedup_service.core.index import BlockIndex
from dedup_service.core.rule import MatchRule

__all__ = ["Candidates", "LocalCandidates"]


class Candidates(Protocol):
    """Whoever finds the kept pages near a fingerprint."""

    def near(self, fingerprint: Fingerprint) -> list[int]:
        """Return the sequences of all entries within the rule's radius in any channel, ascending."""
        ...

    def add(self, entry: Entry) -> None:
        """Find `entry` from now on."""
        ...

    def remove(self, entry: Entry) -> None:
        """Do not find `entry` any more."""
        ...


class LocalCandidates:
    """Block indexes in this process, one for each channel that `rule` probes. shards: parts of each."""

    def __init__(self, rule: MatchRule, restored: EntryRows, *, shards: int = 1) -> None:
        self._indexes: dict[str, BlockIndex] = {}
        for channel in CHANNELS:
            radius = rule.radius(channel)
            if radius is not None:
                self._indexes[channel] = BlockIndex(radius, shards=shards)
                self._indexes[channel].insert_many(*restored.indexed(channel))

    def near(self, fingerprint: Fingerprint) -> list[int]:
        """Return the sequences of all entries within the rule's radius in any channel, ascending."""
        near: set[int] = set()
        for channel, index in self._indexes.items():
            value = getattr(fingerprint, channel)
            if value is not None:
                near.update(index.probe(value).sequences.tolist())
        return sorted(near)

    def add(self, entry: Entry) -> None:
        """Insert what `entry` has into the indexes; one too short to be judged has nothing there."""
        for index, value in self._values(entry):
            index.insert(entry.sequence, value)

    def remove(self, entry: Entry) -> None:
        """Take `entry` out of the indexes."""
        for index, value in self._values(entry):
            index.remove(entry.sequence, value)

    def _values(self, entry: Entry) -> list[tuple[BlockIndex, int]]:
        if not entry.indexed:
            return []
        values = ((index, entry.channel(channel)) for channel, index in self._indexes.items())
        return [(index, value) for index, value in values if value is not None]
