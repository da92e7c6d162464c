"""PendingOutcomes of the log that are not written to the output topics yet.

The log is one and read by everybody; what is written is split: a record's outputs are written by whoever has its
partition of `pages` in the deciding group. So an outcome waits here for its page to be read, or for word that
another process wrote it. It is kept small: the verdict as the bytes that will be written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.kafka.messages.verdict import verdict_value

__all__ = ["PendingOutcome", "PendingOutcomes"]


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """What is to be written of an input record.

    value: the verdict's message, or, where `kind` is None (a rejected record), the problem in UTF-8.
    key: canonical URL in UTF-8, empty for a rejected record. of_url: see Verdict.duplicate_of_url.
    drop: the page itself is not passed on (action `drop`, a duplicate or unchanged).
    """

    sequence: int
    kind: str | None
    value: bytes
    key: bytes = b""
    original_url: str | None = None
    drop: bool = False

    @classmethod
    def of(cls, outcome: Outcome) -> "PendingOutcome":
        """Return `outcome` as it waits."""
        verdict = outcome.verdict
        if verdict is None:
            return cls(outcome.sequence, None, (outcome.problem or "").encode("utf-8", "replace"))
        again = verdict.kind in {VerdictKind.DUPLICATE, VerdictKind.UNCHANGED}
        return cls(
            outcome.sequence,
            verdict.kind.value,
            verdict_value(verdict, outcome.source),
            (outcome.canonical_url or "").encode("utf-8", "replace"),
            verdict.duplicate_of_url,
            again and outcome.action is Action.DROP,
        )


class PendingOutcomes:
    """Pending outcomes by partition and offset of `pages`.

    written: (topic, partition) → offset below which all outputs are known to be written; it never goes back, so that
    group offsets which expired, or were moved back, do not have outputs written twice.
    topic: the `pages` whose outputs are written here, None for any: a log made by `replay` names those of another.
    Invariant: an outcome waits here iff the log has brought it and its offset is not below `written`.
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
        self._size = 0
        for source, outcome in (pending or {}).items():
            if not self.is_written(source):
                self._put(source, outcome)

    def __len__(self) -> int:
        return self._size

    @property
    def partitions(self) -> frozenset[tuple[str, int]]:
        """The partitions (topic, number) for which outcomes wait."""
        return frozenset(key for key, waiting in self._waiting.items() if waiting)

    def is_written(self, source: Source) -> bool:
        """Whether the outputs of an input record are known to be written."""
        return source.offset < self.written.get((source.topic, source.partition), 0)

    def add(self, outcome: Outcome) -> None:
        """Let `outcome` wait, unless it is known to be written, or of another topic."""
        if self._topic in {None, outcome.source.topic} and not self.is_written(outcome.source):
            self._put(outcome.source, PendingOutcome.of(outcome))

    def get(self, topic: str, partition: int, offset: int) -> PendingOutcome | None:
        """Return what waits for a record, None where the log has not brought it yet."""
        waiting = self._waiting.get((topic, partition))
        return None if waiting is None else waiting.get(offset)

    def forget(self, topic: str, partition: int, offset: int) -> None:
        """Forget the outcome of a record that was just written, the next one of its partition."""
        waiting = self._waiting.get((topic, partition), {})
        self._size -= waiting.pop(offset, None) is not None
        self.written[topic, partition] = max(self.written.get((topic, partition), 0), offset + 1)

    def written_below(self, topic: str, partition: int, offset: int) -> None:
        """Forget all outcomes of a partition below `offset`: they are written, by whomever."""
        key = (topic, partition)
        if offset <= self.written.get(key, 0):
            return
        self.written[key] = offset
        waiting = self._waiting.get(key, {})
        done = [at for at in waiting if at < offset]
        for at in done:
            del waiting[at]
        self._size -= len(done)

    def items(self) -> Iterator[tuple[Source, PendingOutcome]]:
        """Yield all that waits, for a snapshot."""
        for (topic, partition), waiting in self._waiting.items():
            for offset, outcome in waiting.items():
                yield Source(topic, partition, offset), outcome

    def _put(self, source: Source, outcome: PendingOutcome) -> None:
        waiting = self._waiting.setdefault((source.topic, source.partition), {})
        self._size += source.offset not in waiting
        waiting[source.offset] = outcome
