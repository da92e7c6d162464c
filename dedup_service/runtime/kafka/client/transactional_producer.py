"""Whole transactions: all messages and the offsets of their input, or nothing.

How: one producer at a time under one transactional id. A transaction that fails in any way is given up with
its producer: the next one, under the same id, makes the brokers end what was open (`init_transactions`),
whether the failure was a dead broker, a fence or a timeout. So there is one way to recover from all faults,
and `abort` is not needed. `commit` then raises TransactionLostError, and the step rewinds to its committed
offsets (`_rewind_after` in `steps.fingerprinting` and `steps.deciding`). The faults of the library are
handled in `patches` and `internals`.

Messages are handed over as whole batches (`encoded_batches`); if a topic finds one of them too large, the transaction
is repeated with each for itself.

Invariants: messages are all acknowledged before the commit is sent; `commit` returns only when the
transaction is known to be committed; `commit` blocks no longer than `timeout_s` for the transaction and as
long again for the next producer, twice that if a message is too large. `open` tries until it works or `stop` is set.
One thread uses an instance.
Source: KIP-98, KIP-447; kafka-python 3.0.12, producer/.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaProducer

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerGroupMetadata, TopicPartition, connect
from dedup_service.runtime.kafka.client.encoded_batches import hand_over, places
from dedup_service.runtime.kafka.client.errors import TransactionLostError, UnreachableError
from dedup_service.runtime.kafka.client.producers import (
    COMMON,
    Message,
    RetiredProducers,
    check_size,
    first_size_error,
    send,
    try_until_done,
)
from dedup_service.runtime.kafka.client.retry import (
    FENCED,
    TOO_LARGE,
    TRANSIENT,
    permanent_error,
    reasons,
)

_LOG = logging.getLogger(__name__)


class _OneTooLargeError(Exception):
    """A topic has refused the size of one of the messages; nothing was written."""


class TransactionalProducer:
    """A producer of whole transactions under one transactional id.

    timeout_s: after which the brokers abort an open transaction, and after which we give a transaction up.
    max_bytes: of the largest message, before compression. compression: lz4, zstd, gzip or None.
    """

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        *,
        timeout_s: float = 10.0,
        max_bytes: int = 16 << 20,
        compression: str | None = "lz4",
    ) -> None:
        self._connection = connection
        self._id = transactional_id
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._compression = compression
        self._producer: KafkaProducer | None = None
        self._retired = RetiredProducers()

    def open(self, stop: threading.Event | None = None) -> None:
        """Fence earlier owners of the id and end their transactions; try until it works or `stop` is set.

        Raises NotAuthorisedError and ConfigurationError, which no second try changes.
        """
        if self._producer is None:
            try_until_done(self._renew, f"{self._id}: no producer yet", stop)

    def commit(
        self,
        messages: Iterable[Message],
        offsets: Mapping[TopicPartition, int] | None = None,
        group: ConsumerGroupMetadata | None = None,
        *,
        once: bool = False,
    ) -> list[tuple[int, int]]:
        """Write all of `messages` and commit `offsets` for `group` in one transaction.

        once: never repeat it, for which the id would be taken over again: each message is handed over for itself.
        Returns (partition, offset) of each message. Raises TransactionLostError if the transaction was
        not, or may not have been, committed: rewind to the committed offsets. RecordTooLargeError
        (`position` says which message), NotAuthorisedError and ConfigurationError mean that nothing was
        written, nor will be until that is corrected.
        """
        messages = list(messages)
        for position, message in enumerate(messages):
            check_size(message, position, self._max_bytes)
        if not messages and not offsets:
            return []
        try:
            return self._commit(messages, offsets or {}, group, singly=once)
        except _OneTooLargeError:
            return self._commit(messages, offsets or {}, group, singly=True)

    def _commit(
        self,
        messages: list[Message],
        offsets: Mapping[TopicPartition, int],
        group: ConsumerGroupMetadata | None,
        *,
        singly: bool = False,
    ) -> list[tuple[int, int]]:
        """Do a transaction. singly: hand each message over for itself, so that it is known which one is too large."""
        producer = self._current()
        futures: list[Any] = []
        try:
            return self._write(producer, messages, futures, offsets, group, singly=singly)
        except TRANSIENT as error:
            if not singly and any(isinstance(reason, TOO_LARGE) for reason in reasons(error)):
                self._replace()
                raise _OneTooLargeError from error
            raise self._lost(error, producer, messages, futures) from error
        except BaseException:
            self._retire()
            raise

    def close(self) -> None:
        """Retire the producer.

        An open transaction ends with its timeout, or with the next owner of the id.
        """
        self._retire()

    def _write(
        self,
        producer: KafkaProducer,
        messages: list[Message],
        futures: list[Any],
        offsets: Mapping[TopicPartition, int],
        group: ConsumerGroupMetadata | None,
        *,
        singly: bool,
    ) -> list[tuple[int, int]]:
        deadline = time.monotonic() + self._timeout_s
        producer.begin_transaction()
        if singly:
            futures.extend(send(producer, message) for message in messages)
        else:
            futures.extend(hand_over(producer, messages))
        internals.wait_for_all(producer, futures, deadline - time.monotonic())
        if offsets:
            internals.send_offsets(producer, offsets, group, deadline - time.monotonic())
        internals.commit(producer, deadline - time.monotonic())
        if not singly:
            return places(futures, len(messages))
        return [(future.value.partition, future.value.offset) for future in futures]

    def _current(self) -> KafkaProducer:
        """Return the producer; a new one if the last could not be replaced in time."""
        if self._producer is None:
            try:
                self._renew()
            except UnreachableError as error:
                raise TransactionLostError(f"{self._id}: nothing was written: {error}") from error
        return self._producer

    def _renew(self) -> None:
        """Create a producer, and have the brokers end what its predecessor left open."""
        self._retired.wait(self._timeout_s)
        producer = connect(KafkaProducer, self._connection, **self._configs())
        try:
            producer.init_transactions()
        except TRANSIENT as error:
            reason = internals.last_error(producer)
            self._retired.retire(producer)
            raise permanent_error(
                error, f"to begin transactions as {self._id}", reason, transactional_id=self._id
            ) or UnreachableError(
                f"the coordinator of the transactional id {self._id} does not answer ({error}); it may be starting"
            ) from error
        self._producer = producer

    def _retire(self) -> None:
        if self._producer is not None:
            self._retired.retire(self._producer)
            self._producer = None

    def _lost(
        self, error: BaseException, producer: KafkaProducer, messages: list[Message], futures: list[Any]
    ) -> TwinsieveError:
        """Replace the producer and return what to raise."""
        last = internals.last_error(producer)
        action = f"to write as {self._id} to {', '.join(sorted({message.topic for message in messages}))}"
        found = first_size_error(messages, futures) or permanent_error(
            error, action, last, needs="Write", transactional_id=self._id
        )
        self._replace()
        return found or TransactionLostError(
            f"transaction of {self._id} with {len(messages)} messages was not, or may not have been, committed: "
            f"{_why(error, last)}; rewind to the committed offsets"
        )

    def _replace(self) -> None:
        self._retire()
        try:
            self._renew()
        except TwinsieveError as error:  # the next commit tries again, and raises if it cannot
            _LOG.warning("%s: no new producer yet: %s", self._id, error)

    def _configs(self) -> dict[str, Any]:
        timeout_ms = int(self._timeout_s * 1000)
        return {
            **COMMON,
            "transactional_id": self._id,
            "transaction_timeout_ms": timeout_ms,
            "max_block_ms": timeout_ms,
            "bootstrap_timeout_ms": timeout_ms,
            "max_request_size": self._max_bytes,
            "compression_type": self._compression,
            # A batch that expires fails alone, and the transaction would be committed without it: none may expire
            # before we have given the transaction up.
            "delivery_timeout_ms": 10 * timeout_ms + 60_000,
            "retry_backoff_ms": 5,  # 9 ms a transaction instead of 90: the pause while the last one is being completed
            "linger_ms": 1_000,  # until all messages are handed over; then nothing lingers
            "batch_size": 256 << 10,
        }


def _why(error: BaseException, last: BaseException | None) -> str:
    if any(isinstance(reason, FENCED) for one in (error, last) for reason in reasons(one)):
        return "another producer has taken over the transactional id, or it took longer than its timeout"
    return f"{type(error).__name__}: {error}"
