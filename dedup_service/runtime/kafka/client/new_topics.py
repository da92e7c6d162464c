"""What is replayed as a set of topics of its own: a log, its verdicts, and the pages where they were read again.

How: a batch of log records is committed, which gives them their sequences; a replica of the new log decides them, and
the outputs follow in the next transaction. So the new topics are what a service that had begun so would have written,
and `twinsieve serve --prefix` goes on from them.
Invariant: only an empty log is filled. A replay that breaks off leaves topics that are not whole: remove them.
"""

from collections.abc import Iterator, Sequence

from dedup_service.core.changelog import LogRecord, PageRecord
from dedup_service.core.errors import StateError
from dedup_service.core.replica import Outcome, Replica
from dedup_service.runtime.kafka.client.clients import Connection, LogReader, Message, Transactions
from dedup_service.runtime.kafka.client.errors import TransactionLostError
from dedup_service.runtime.kafka.replaying import Replayed
from dedup_service.runtime.kafka.steps.outcomes import PendingOutcome
from dedup_service.runtime.kafka.steps.outputs import outputs_of
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.headers import log_headers, verdict_headers
from dedup_service.runtime.kafka.wire.keys import page_key
from dedup_service.runtime.kafka.wire.log_record import encode

__all__ = ["BrokenOffError", "NewTopics", "require_empty"]

TRANSACTION_BYTES = 8 << 20


class BrokenOffError(StateError):
    """A replay broke off, its topics are not whole. Remove them, make them anew, and start the replay again."""


class NewTopics:
    """A sink that fills `topics`."""

    def __init__(self, topics: Topics, transactions: Transactions, replica: Replica) -> None:
        self._topics = topics
        self._transactions = transactions
        self._replica = replica

    def take(self, batch: Sequence[Replayed]) -> None:
        """Append a batch to the log, decide it, write its outputs. BrokenOffError where the brokers lose it."""
        if not batch:
            return
        placed = self._commit([self._record(item.record) for item in batch])
        outcomes = [
            (self._replica.apply(offset, item.record), item) for (_, offset), item in zip(placed, batch, strict=True)
        ]
        outputs = (
            message for outcome, item in outcomes if outcome is not None for message in self._outputs(outcome, item)
        )
        for part in _parts(outputs):
            self._commit(part)

    def _record(self, record: LogRecord) -> Message:
        key = page_key(record.prepared.page.canonical_url) if isinstance(record, PageRecord) else None
        log = self._topics.fingerprints
        return Message(log, encode(record), key, log_headers(record, log), partition=0)

    def _outputs(self, outcome: Outcome, item: Replayed) -> Iterator[Message]:
        """The verdict; with the page at hand, all that a service writes."""
        pending = PendingOutcome.of(outcome)
        if item.page is not None:
            yield from outputs_of(self._topics, item.page, pending)
        elif outcome.verdict is not None:
            headers = verdict_headers(outcome.source, self._topics.verdicts)
            yield Message(self._topics.verdicts, pending.value, pending.key, headers)

    def _commit(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        try:
            return self._transactions.commit(messages) or []
        except TransactionLostError as error:
            raise BrokenOffError(
                f"the replay broke off: {error}; the topics {self._topics.prefix}… are not whole: remove them, make "
                "them anew with `twinsieve topics create`, and start the replay again"
            ) from error


def require_empty(connection: Connection, topics: Topics) -> None:
    """StateError where the log of `topics` has records: a replay begins a log, it does not mix two."""
    log = LogReader(connection, topics.fingerprints)
    try:
        if log.read_one(0) is not None:
            raise StateError(
                f"{topics.fingerprints} has records already: give another --to-prefix, or remove its topics and make "
                "them anew"
            )
    finally:
        log.close()


def _parts(messages: Iterator[Message]) -> Iterator[list[Message]]:
    part: list[Message] = []
    size = 0
    for message in messages:
        part.append(message)
        size += message.size_bytes
        if size >= TRANSACTION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
