"""Pending outcomes: known from the log, and not yet written to the output topics.

Every process reads the whole log, but writing is split: the outputs of a record are written by the process
that has its partition of `pages` in the deciding group. An outcome is therefore pending until its page is
read here and written, or until `dedup.offsets` shows that another process wrote it. Outcomes are kept
small: a verdict is held as the bytes that will be written.

Pages of files, from a backfill, are in no partition of `pages`. Their outcomes are in one pretended partition
(`BACKFILLED`), at the sequences of their records in the log as offsets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source, is_backfilled, is_reported
from dedup_service.core.record_columns import RecordColumns
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.kafka.messages.verdict import verdict_value

BACKFILLED = ("backfill:", 0)
"""Topic and partition of the outcomes of pages of files; no topic of Kafka has a colon in its name."""

_NEAR = 64
"""Offsets that `next_after` looks up one by one."""


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """What to write for one input record.

    sequence: of its record in the log. kind: of the verdict, None for a rejected record.
    value: the verdict's message, or the problem in UTF-8 for a rejected record.
    key: canonical URL in UTF-8, empty for a rejected record. original_url: see Verdict.duplicate_of_url.
    drop: the page itself is not passed on (action `drop`, and a duplicate or unchanged page).
    end: offset after the last input record that it is about; None: of one record.
    """

    sequence: int
    kind: str | None
    value: bytes
    key: bytes = b""
    original_url: str | None = None
    drop: bool = False
    end: int | None = None

    @classmethod
    def from_outcome(cls, outcome: Outcome) -> "PendingOutcome":
        """Return what to write for `outcome`."""
        verdict = outcome.verdict
        if verdict is None:
            return cls(outcome.sequence, None, (outcome.problem or "").encode("utf-8", "replace"), end=outcome.end)
        repeats = verdict.kind in {VerdictKind.DUPLICATE, VerdictKind.UNCHANGED}
        return cls(
            outcome.sequence,
            verdict.kind.value,
            verdict_value(verdict, outcome.source),
            (outcome.canonical_url or "").encode("utf-8", "replace"),
            verdict.duplicate_of_url,
            repeats and outcome.action is Action.DROP,
        )


class PendingOutcomes:
    """Pending outcomes by partition and offset of `pages`.

    written: (topic, partition) → offset below which all outputs are known to be written. It never decreases.
    topic: the `pages` whose outputs are written here, None for any. A log made by `replay` names another one.
    Invariant: an outcome is pending iff its record was read from the log and its offset is not below
    `written`.
    """

    def __init__(
        self,
        pending: Mapping[Source, PendingOutcome] | None = None,
        written: Mapping[tuple[str, int], int] | None = None,
        topic: str | None = None,
    ) -> None:
        self._topic = topic
        self._waiting: dict[tuple[str, int], dict[int, PendingOutcome]] = {}
        self.written: dict[tuple[str, int], int] = dict(written or {})
        self._latest: dict[tuple[str, int], int] = {}
        self._size = 0
        for source, outcome in (pending or {}).items():
            if not self.is_written(source):
                self._put(source, outcome)

    def __len__(self) -> int:
        return self._size

    @property
    def partitions(self) -> frozenset[tuple[str, int]]:
        """The partitions (topic, number) that have pending outcomes."""
        return frozenset(key for key, waiting in self._waiting.items() if waiting)

    def is_written(self, source: Source) -> bool:
        """Whether the outputs of an input record are known to be written."""
        return source.offset < self.written.get((source.topic, source.partition), 0)

    def wanted(self, records: RecordColumns) -> list[bool]:
        """Return of which input records `add` takes the outcome."""
        if is_backfilled(records.topic):
            written = self.written.get(BACKFILLED, 0) if is_reported(records.topic) else None
            return [written is not None and sequence >= written for sequence in records.sequences]
        if self._topic not in {None, records.topic}:
            return [False] * len(records)
        below = {number: self.written.get((records.topic, number), 0) for number in set(records.partitions)}
        pairs = zip(records.partitions, records.offsets, strict=True)
        return [offset >= below[partition] for partition, offset in pairs]

    def add(self, outcome: Outcome) -> None:
        """Add `outcome`, unless it is known to be written, belongs to another topic, or is not to be written."""
        if is_backfilled(outcome.source.topic):
            place = Source(*BACKFILLED, outcome.sequence)
            wanted = is_reported(outcome.source.topic) and outcome.verdict is not None
            if wanted and not self.is_written(place):
                self._put(place, PendingOutcome.from_outcome(outcome))
            return
        if self._topic in {None, outcome.source.topic} and not self.is_written(outcome.source):
            self._put(outcome.source, PendingOutcome.from_outcome(outcome))

    def get(self, source: Source) -> PendingOutcome | None:
        """Return the pending outcome of a record, None if the log has not been read that far."""
        waiting = self._waiting.get((source.topic, source.partition))
        return None if waiting is None else waiting.get(source.offset)

    def has_later(self, source: Source) -> bool:
        """Whether a later record of the same partition has had an outcome."""
        return self._latest.get((source.topic, source.partition), -1) > source.offset

    def next_after(self, source: Source) -> int | None:
        """Return the offset of the first pending outcome of a later record of the partition, None if there is none.

        Most gaps are short, so the next offsets are looked up before all are compared.
        """
        if not self.has_later(source):
            return None
        waiting = self._waiting.get((source.topic, source.partition), {})
        near = range(source.offset + 1, source.offset + 1 + _NEAR)
        found = next((offset for offset in near if offset in waiting), None)
        if found is None:
            found = min((offset for offset in waiting if offset > source.offset), default=None)
        return found

    def between(self, first: Source, end: int) -> list[tuple[Source, PendingOutcome]]:
        """Return the pending outcomes of one partition from `first` to before the offset `end`, in order."""
        waiting = self._waiting.get((first.topic, first.partition))
        if not waiting:
            return []
        within = range(first.offset, end)
        offsets = [offset for offset in waiting if offset in within] if len(within) > len(waiting) else within
        return [
            (Source(first.topic, first.partition, offset), waiting[offset])
            for offset in sorted(offsets)
            if offset in waiting
        ]

    def backfilled(self, most: int) -> list[tuple[Source, PendingOutcome]]:
        """Return the first pending outcomes of pages of files, in the order of the log, at most `most`."""
        waiting = self._waiting.get(BACKFILLED, {})  # in the order of the log, since they came in it
        return [(Source(*BACKFILLED, sequence), outcome) for sequence, outcome in islice(waiting.items(), most)]

    def forget(self, source: Source, end: int | None = None) -> None:
        """Remove the outcome of a record that was just written, the next one of its partition; end: see there."""
        key = (source.topic, source.partition)
        self._size -= self._waiting.get(key, {}).pop(source.offset, None) is not None
        self.written[key] = max(self.written.get(key, 0), end or source.offset + 1)

    def written_below(self, topic: str, partition: int, offset: int) -> None:
        """Remove all outcomes of a partition below `offset`: some process has written them."""
        key = (topic, partition)
        if offset <= self.written.get(key, 0):
            return
        self.written[key] = offset
        waiting = self._waiting.get(key, {})
        done = [earlier for earlier in waiting if earlier < offset]
        for earlier in done:
            del waiting[earlier]
        self._size -= len(done)

    def copy(self) -> "PendingOutcomes":
        """Return a copy, within milliseconds for any number of them."""
        copy = PendingOutcomes(written=self.written, topic=self._topic)
        copy._waiting = {key: dict(waiting) for key, waiting in self._waiting.items()}
        copy._latest, copy._size = dict(self._latest), self._size
        return copy

    def items(self) -> Iterator[tuple[Source, PendingOutcome]]:
        """Yield all pending outcomes, for a snapshot."""
        for (topic, partition), waiting in self._waiting.items():
            for offset, outcome in waiting.items():
                yield Source(topic, partition, offset), outcome

    def _put(self, source: Source, outcome: PendingOutcome) -> None:
        key = (source.topic, source.partition)
        waiting = self._waiting.setdefault(key, {})
        self._size += source.offset not in waiting
        waiting[source.offset] = outcome
        self._latest[key] = max(self._latest.get(key, -1), source.offset)
