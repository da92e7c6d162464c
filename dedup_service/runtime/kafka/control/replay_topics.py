"""Fill a set of topics with a replayed log, its verdicts and its pages, as if a service had been there.

How: a batch of records is committed to the new log, which gives them their sequences. A replica of that log
decides them, and the outputs follow in the next transaction. Sequences that a record names are those of the old
log; `NewSequences` has the new ones. Records that were deleted unread have no page, so nothing is written for them
but their place in the log.

Invariants: only an empty set is filled. Before its first record, the set is marked as
unfinished (`ReplayMark`), after the last output as finished. Whatever ends a replay in between, nobody uses what
it left (`operator_records.require_whole`).
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import LogRecord, Source, UnwrittenRecord, is_reported, sequence_at
from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import RecordTooLargeError, TransactionLostError
from dedup_service.runtime.kafka.client.log_consumer import PartitionReader
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.operator_records import require_whole
from dedup_service.runtime.kafka.control.replay import FETCH_TIMEOUT_S, Replayed
from dedup_service.runtime.kafka.messages.headers import Headers, verdict_headers
from dedup_service.runtime.kafka.messages.log_record import log_message, log_messages
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED, PendingOutcome
from dedup_service.runtime.kafka.state.step_offsets import (
    BACKFILL_DECIDED,
    ReplayMark,
    replay_message,
    step_messages,
)
from dedup_service.runtime.kafka.steps.outputs import STORED_KINDS, Form, outputs_of
from dedup_service.runtime.kafka.topics import Topics

TRANSACTION_BYTES = 8 << 20


class ReplayInterruptedError(StateError):
    """A replay failed half-way.

    Its topics are incomplete. Remove them, create them again, and restart the replay.
    """


class NewSequences:
    """The new sequence of each record that is in both logs. Both rise; a record takes 16 bytes.

    >>> sequences = NewSequences()
    >>> sequences.add(3, 0)
    >>> sequences.add(7, 1)
    >>> sequences.get(7), sequences.get(5)
    (1, None)
    """

    def __init__(self) -> None:
        self._old, self._new = array("q"), array("q")

    def add(self, old: int, new: int) -> None:
        """Add a record; both sequences are above those of all records before it."""
        self._old.append(old)
        self._new.append(new)

    def get(self, old: int) -> int | None:
        """Return the new sequence of a record, None if it was left out."""
        at = bisect_left(self._old, old)
        return self._new[at] if self._old[at : at + 1] == array("q", [old]) else None


class ReplayTopics:
    """A sink that fills `topics`, which must be empty: `begin`, then batches, then `finish`.

    log: identity of the new log. first: what its first message is numbered: as that of the old one, since both have the
    same bases. All methods raise ReplayInterruptedError if a transaction is lost.
    """

    def __init__(
        self, topics: Topics, log: str, transactions: TransactionalProducer, replica: Replica, *, first: int = 0
    ) -> None:
        self._topics = topics
        self._log = log
        self._transactions = transactions
        self._replica = replica
        self._first = first
        self._sequences = NewSequences()

    def begin(self) -> None:
        """Mark the topics as unfinished, in a transaction before all others."""
        self._commit([replay_message(self._topics, ReplayMark(self._log, finished=False))])

    def take(self, batch: Sequence[Replayed]) -> None:
        """Append a batch to the log, decide it, write its outputs."""
        for part in _up_to_unwritten(batch):
            self._take(part)

    def finish(self) -> None:
        """Mark the topics as finished, in the last transaction; verdicts on pages of files are written."""
        written = {TopicPartition(*BACKFILLED): self._replica.sequence + 1}
        backfilled = self._replica.counts["backfilled_files"] > 0
        self._commit(
            [
                *(step_messages(self._topics, BACKFILL_DECIDED, written) if backfilled else ()),
                replay_message(self._topics, ReplayMark(self._log, finished=True)),
            ]
        )

    def _take(self, batch: Sequence[Replayed]) -> None:
        items = [item for item in map(self._with_new_sequences, batch) if item is not None]
        if not items:
            return
        sequences = self._append(items)
        outcomes = self._replica.apply_many(
            [(sequence, item.record) for sequence, item in zip(sequences, items, strict=True)]
        )
        outputs = []
        for sequence, outcome, item in zip(sequences, outcomes, items, strict=True):
            self._sequences.add(item.sequence, sequence)
            if outcome is not None:
                outputs.append(_Output.of(self._topics, PendingOutcome.from_outcome(outcome), outcome.source, item))
        for part in _parts(outputs):
            self._write(part)

    def _append(self, items: Sequence[Replayed]) -> list[int]:
        """Append the records to the log; return their sequences."""
        messages: list[tuple[Message, int]] = []
        for headers, run in groupby(items, key=lambda item: item.headers):
            messages += self._messages([item.record for item in run], headers)
        placed = self._commit([message for message, _ in messages])
        return [
            sequence_at(self._first + offset, place)
            for (_, offset), (_, count) in zip(placed, messages, strict=True)
            for place in range(count)
        ]

    def _messages(self, records: Sequence[LogRecord], headers: Headers) -> list[tuple[Message, int]]:
        """Return the messages with the records; what has an author is a message of its own."""
        log = self._topics.fingerprints
        return [(log_message(log, record, headers), 1) for record in records] if headers else log_messages(log, records)

    def _write(self, outputs: list["_Output"]) -> None:
        """Write the outputs of some records, in a smaller form where a topic refuses them.

        Pages that a store should have had, and that became dead letters, leave the index by a record of the log.
        """
        while True:
            owners = [number for number, output in enumerate(outputs) for _ in output.messages]
            try:
                self._commit([message for output in outputs for message in output.messages])
                break
            except RecordTooLargeError as error:
                smaller = outputs[owners[error.position]].smaller(self._topics, str(error))
                if smaller is None:
                    raise
                outputs[owners[error.position]] = smaller
        unwritten = tuple(output.outcome.sequence for output in outputs if output.is_lost(self._topics))
        if unwritten:
            record = UnwrittenRecord(unwritten, "a topic does not take their size")
            ((_, offset),) = self._commit([log_message(self._topics.fingerprints, record)])
            self._replica.apply(sequence_at(self._first + offset), record)

    def _with_new_sequences(self, item: Replayed) -> Replayed | None:
        """Return the record as the new log has to say it, None if all that it names was left out."""
        if not isinstance(item.record, UnwrittenRecord):
            return item
        begin = sequence_at(self._first)  # pages of bases come before it, and keep their numbers
        found = (one if one < begin else self._sequences.get(one) for one in item.record.sequences)
        sequences = tuple(sequence for sequence in found if sequence is not None)
        return replace(item, record=replace(item.record, sequences=sequences)) if sequences else None

    def _commit(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        try:
            return self._transactions.commit(messages) or []
        except TransactionLostError as error:
            raise ReplayInterruptedError(
                f"the replay was interrupted: {error}; the topics {self._topics.prefix}… are incomplete: remove them, "
                "create them again with `twinsieve topics create`, and restart the replay"
            ) from error


def require_empty(connection: Connection, topics: Topics) -> None:
    """Raise StateError if anything is in `topics`, except in `pages`: a replay must not mix two logs.

    A transaction that is open there counts; what was aborted does not, and cannot be read. Raises as
    `require_whole`; UnreachableError if the topics cannot be read.
    """
    in_use = require_whole(connection, topics)
    with administration(connection) as admin:
        partitions = admin.partitions_of([name for name in topics.all if name != topics.pages])
        watermarks = admin.high_watermarks(partitions)
    with closing(PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=FETCH_TIMEOUT_S)) as reader:
        ends = reader.ends(partitions)
        written = {partition.topic for partition in partitions if watermarks[partition] > ends[partition]}
        reader.assign(reader.beginnings)
        written.update(record.topic for record in next(reader.read(ends), []))
    if in_use or written:
        raise StateError(
            f"something was written to {', '.join(sorted(written)) or topics.offsets} already: give another "
            f"--to-prefix, or remove the topics with the prefix {topics.prefix!r} and create them again"
        )


def _up_to_unwritten(batch: Sequence[Replayed]) -> Iterator[list[Replayed]]:
    """Cut a batch before each UnwrittenRecord: the records that it names must have their sequences by then."""
    part: list[Replayed] = []
    for item in batch:
        if part and isinstance(item.record, UnwrittenRecord):
            yield part
            part = []
        part.append(item)
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class _Output:
    """What is to be written for one record, in one form."""

    outcome: PendingOutcome
    item: Replayed
    form: Form
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, topics: Topics, outcome: PendingOutcome, source: Source, item: Replayed) -> "_Output":
        """Return the verdict; where the page was read again, all that a service writes."""
        if item.page is not None:
            messages = tuple(outputs_of(topics, item.page, outcome))
        elif outcome.kind is not None and is_reported(source.topic):
            headers = verdict_headers(source, topics.verdicts)
            messages = (Message(topics.verdicts, outcome.value, outcome.key, headers),)
        else:
            messages = ()
        return cls(outcome, item, Form.PAGE, messages)

    def smaller(self, topics: Topics, reason: str) -> "_Output | None":
        """Return the next form, which is smaller; None if there is none. reason: why this one was refused."""
        form = self.form.smaller(self.outcome)
        if form is None or self.item.page is None:
            return None
        messages = tuple(outputs_of(topics, self.item.page, self.outcome, form, reason))
        return replace(self, form=form, messages=messages)

    def is_lost(self, topics: Topics) -> bool:
        """Whether a store should have had the page, and a dead letter is written instead."""
        return self.outcome.kind in STORED_KINDS and any(message.topic == topics.dlq for message in self.messages)


def _parts(outputs: Iterable[_Output]) -> Iterator[list[_Output]]:
    part: list[_Output] = []
    size = 0
    for output in outputs:
        part.append(output)
        size += sum(message.size_bytes for message in output.messages)
        if size >= TRANSACTION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
