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
import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaProducer

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.connect import ConsumerGroupMetadata, TopicPartition
from dedup_service.runtime.kafka.client.encoded_batches import hand_over, places
from dedup_service.runtime.kafka.client.errors import TransactionLostError, UnreachableError
from dedup_service.runtime.kafka.client.producers import (
    Message,
    SingleProducer,
    first_size_error,
    send,
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


class TransactionalProducer(SingleProducer):
    """A producer of whole transactions under one transactional id, its name.

    timeout_s: after which the brokers abort an open transaction, and after which we give a transaction up.
    """

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
        messages = self._checked(messages)
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
            self.close()
            raise

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
                raise TransactionLostError(f"{self._name}: nothing was written: {error}") from error
        return self._producer

    def _renew(self) -> None:
        """Create a producer, and have the brokers end what its predecessor left open."""
        timeout_ms = int(self._timeout_s * 1000)
        producer = self._connected(
            transactional_id=self._name,
            transaction_timeout_ms=timeout_ms,
            # A batch that expires fails alone, and the transaction would be committed without it: none may expire
            # before we have given the transaction up.
            delivery_timeout_ms=10 * timeout_ms + 60_000,
            retry_backoff_ms=5,  # 9 ms a transaction instead of 90: the pause while the last one is being completed
        )
        try:
            producer.init_transactions()
        except TRANSIENT as error:
            reason = internals.last_error(producer)
            self._retired.retire(producer)
            raise permanent_error(
                error, f"to begin transactions as {self._name}", reason, transactional_id=self._name
            ) or UnreachableError(
                f"the coordinator of the transactional id {self._name} does not answer ({error}); it may be starting"
            ) from error
        self._producer = producer

    def _lost(
        self, error: BaseException, producer: KafkaProducer, messages: list[Message], futures: list[Any]
    ) -> TwinsieveError:
        """Replace the producer and return what to raise."""
        last = internals.last_error(producer)
        action = f"to write as {self._name} to {', '.join(sorted({message.topic for message in messages}))}"
        found = first_size_error(messages, futures) or permanent_error(
            error, action, last, needs="Write", transactional_id=self._name
        )
        self._replace()
        return found or TransactionLostError(
            f"transaction of {self._name} with {len(messages)} messages was not, or may not have been, committed: "
            f"{_why(error, last)}; rewind to the committed offsets"
        )

    def _replace(self) -> None:
        self.close()
        try:
            self._renew()
        except TwinsieveError as error:  # the next commit tries again, and raises if it cannot
            _LOG.warning("%s: no new producer yet: %s", self._name, error)


def _why(error: BaseException, last: BaseException | None) -> str:
    if any(isinstance(reason, FENCED) for one in (error, last) for reason in reasons(one)):
        return "another producer has taken over the transactional id, or it took longer than its timeout"
    return f"{type(error).__name__}: {error}"
