"""Outcomes of the log that are not written to the output topics yet.

The log is one and read by everybody; what is written is split: a record's outputs are written by whoever has its
partition of `pages` in the deciding group. So an outcome waits here for its page to be read, or for word that
another process wrote it. It is kept small: the verdict as the bytes that will be written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dedup_service.core.changelog import Source
from dedup_service.core.replica import Outcome
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.kafka.wire.verdict import verdict_value

__all__ = ["Outcomes", "PendingOutcome"]


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
    of_url: str | None = None
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


class Outcomes:
    """Pending outcomes by partition and offset of `pages`."""

    def __init__(self, pending: Mapping[Source, PendingOutcome] | None = None) -> None:
        self._waiting: dict[tuple[str, int], dict[int, PendingOutcome]] = {}
        self._written: dict[tuple[str, int], int] = {}
        self._size = 0
        for source, outcome in (pending or {}).items():
            self._put(source, outcome)

    def __len__(self) -> int:
        return self._size

    def add(self, outcome: Outcome) -> None:
        """Let `outcome` wait, unless it is known to be written."""
        source = outcome.source
        if source.offset >= self._written.get((source.topic, source.partition), 0):
            self._put(source, PendingOutcome.of(outcome))

    def get(self, topic: str, partition: int, offset: int) -> PendingOutcome | None:
        """Return what waits for a record, None where the log has not brought it yet."""
        return self._waiting.get((topic, partition), {}).get(offset)

    def written(self, topic: str, partition: int, up_to: int) -> None:
        """Forget all outcomes of a partition below offset `up_to`: they are written, by whomever."""
        key = (topic, partition)
        if up_to <= self._written.get(key, 0):
            return
        self._written[key] = up_to
        waiting = self._waiting.get(key, {})
        done = [offset for offset in waiting if offset < up_to]
        for offset in done:
            del waiting[offset]
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
