"""A log of known verdicts on a broker (`tests.known_log`), and the check of a state that was restored from it.

`verify` compares the counts by verdict and the number of entries; the pending verdicts, as they would be written; and
the verdicts on copies of pages from anywhere in the log (original and distance).
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.decision.replica import Replica
from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.log_record import log_message, log_messages
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import RestoredReplica, restore
from dedup_service.runtime.kafka.topics import Topics
from tests import known_log

SEED = 2026
SAMPLE = 4000
TRANSACTION = 2000


@dataclass(frozen=True, slots=True)
class RestoreRun:
    """A log of known verdicts. bootstrap, prefix: where its topic is. folder: of the state that is restored."""

    bootstrap: str
    prefix: str
    folder: Path

    @property
    def connection(self) -> Connection:
        """The connection to the broker."""
        return Connection(self.bootstrap)

    @property
    def log(self) -> str:
        """The name of the log's topic."""
        return Topics(self.prefix).fingerprints

    def fill(self, start: int, stop: int, progress: Callable[[int, int], object] | None = None) -> None:
        """Append pages `start` to `stop`; the policy precedes page 0. progress: receives the pages so far, and all."""
        producer = TransactionalProducer(self.connection, f"{self.prefix}fill", max_bytes=8 << 20)
        producer.open()
        if start == 0:
            producer.commit([log_message(self.log, known_log.policy(uuid.uuid4().hex))])
        for first in range(start, stop, TRANSACTION):
            last = min(stop, first + TRANSACTION)
            producer.commit([message for message, _ in log_messages(self.log, known_log.pages(first, last))])
            if progress is not None:
                progress(last - start, stop - start)
        producer.close()

    def restored(
        self, local: LocalState, entries: int, progress: Callable[[RestoreEvent], None] | None = None
    ) -> RestoredReplica:
        """Return the state of all `entries` pages of the log, restored into `local`."""
        log = LogConsumer(self.connection, self.log)
        below = (entries - SAMPLE) // known_log.PARTITIONS
        written = {(known_log.TOPIC, partition): below for partition in range(known_log.PARTITIONS)}
        state = restore(local, log, written, progress=progress)
        log.close()
        assert state is not None
        return state


def verify(state: RestoredReplica, entries: int) -> None:
    """Compare counts, pending outcomes and samples with the known verdicts; AssertionError if any differ."""
    kinds = Counter(known_log.role(number) for number in range(entries))
    assert all(state.replica.counts[kind.value] == count for kind, count in kinds.items()), state.replica.counts
    assert len(state.replica) == kinds[VerdictKind.UNIQUE], len(state.replica)
    assert len(state.pending_outcomes) >= SAMPLE, len(state.pending_outcomes)
    for source, outcome in state.pending_outcomes.items():
        verdict, _ = read_verdict(outcome.value)
        number = source.offset * known_log.PARTITIONS + source.partition
        known = known_log.known(number)
        url = None if known.original is None else known_log.url_of(known.original)
        found = verdict.kind, verdict.duplicate_of_url, verdict.distance
        assert found == (known.kind, url, known.distance), (number, found, known)
    verify_copies(state.replica, entries)


def verify_copies(replica: Replica, entries: int) -> None:
    """Decide copies of random pages of the log. They are duplicates, so no entry is added or removed."""
    rng = random.Random(SEED)
    for at in range(SAMPLE):
        original = rng.randrange(entries // 10) * 10 + rng.randrange(7)
        outcome = replica.apply(replica.sequence + 1, known_log.record_of_copy(entries + at, original))
        verdict = None if outcome is None else outcome.verdict
        assert verdict is not None, original
        expected = VerdictKind.DUPLICATE, known_log.url_of(original), Distance(0, 0)
        assert (verdict.kind, verdict.duplicate_of_url, verdict.distance) == expected, (original, verdict)
