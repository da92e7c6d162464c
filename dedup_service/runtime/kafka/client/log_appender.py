"""Appends to topics in order and without transactions: a message is there at least once.

    appender.open(stop)
    offsets = appender.append(messages)         # in order; a later message is never there without an earlier one

An open transaction holds back every reader of committed records, in all processes, and costs more than what it
holds. Who writes a topic whose readers recognise what they have had, as the log's do, needs none: if it is not known
whether messages arrived, they are appended again.

How: one producer at a time, idempotent, so the library's own repetitions double nothing. Messages are sent in pieces,
and each piece is acknowledged before the next one is sent. A large message is a piece of its own: a topic may refuse
it, and what comes after it must not be there before it. A producer that fails in any way is given up.

Invariants: `append` returns only when all messages are acknowledged by all replicas in sync. If it raises, a first
part of the messages may be there, or come later. It blocks no longer than `timeout_s`.
One thread uses an instance.
Source: KIP-98 (idempotent producer); kafka-python 3.0.12, producer/.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.errors import AppendLostError, BrokerError
from dedup_service.runtime.kafka.client.producers import (
    Message,
    SingleProducer,
    first_size_error,
    send,
)
from dedup_service.runtime.kafka.client.retry import TRANSIENT, permanent_error

_PIECE_BYTES = 192 << 10
"""Of messages that are sent together, before compression: less than the library's batches, so one request has them."""

_SMALL_BYTES = 16 << 10
"""Of a message that goes together with others: no topic of ours has a limit below it."""

_OVERHEAD_BYTES = 64
"""Of a message beside its key, value and headers, at most."""


class LogAppender(SingleProducer):
    """Appends messages."""

    def append(self, messages: Iterable[Message]) -> list[int]:
        """Append messages in their order; return their offsets.

        Raises AppendLostError if some may not be there: append them again. RecordTooLargeError (`position` says which
        message), NotAuthorisedError and ConfigurationError: none from that message on is there, nor will be until that
        is corrected.
        """
        messages = self._checked(messages)
        if not messages:
            return []
        deadline = time.monotonic() + self._timeout_s
        offsets: list[int] = []
        for piece in _pieces(messages):
            offsets += self._append(piece, len(offsets), deadline)
        return offsets

    def _append(self, piece: Sequence[Message], first: int, deadline: float) -> list[int]:
        """Append messages that are sent together. first: position of the first one."""
        futures: list[Any] = []
        try:
            if self._producer is None:
                self._renew()
            futures.extend(send(self._producer, message) for message in piece)
            internals.wait_for_all(self._producer, futures, deadline - time.monotonic())
        except BrokerError as error:
            if not error.retryable:
                raise
            raise AppendLostError(f"{self._name}: nothing was appended from message {first} on: {error}") from error
        except TRANSIENT as error:
            last = None if self._producer is None else internals.last_error(self._producer)
            self.close()
            topics = ", ".join(sorted({message.topic for message in piece}))
            raise (
                first_size_error(piece, futures, first)
                or permanent_error(error, f"to append to {topics}", last, needs="Write")
                or AppendLostError(
                    f"{len(piece)} messages of {self._name} for {topics} may not be there: "
                    f"{type(error).__name__}: {error}"
                )
            ) from error
        except BaseException:
            self.close()
            raise
        return [int(future.value.offset) for future in futures]

    def _renew(self) -> None:
        # longer than an append: it gives up, not a batch of it
        self._producer = self._connected(delivery_timeout_ms=2 * int(self._timeout_s * 1000) + 60_000)


def _pieces(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield messages in order, those that are sent together."""
    piece: list[Message] = []
    size = 0
    for message in messages:
        own = message.size_bytes + _OVERHEAD_BYTES
        if piece and (own > _SMALL_BYTES or size + own > _PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += own if own <= _SMALL_BYTES else _PIECE_BYTES
    if piece:
        yield piece
