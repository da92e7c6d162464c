"""The step of a shard: the log and the outcomes in, answers out.

One thread reads both topics. A message of the log is answered as soon as the outcomes are known that it needs
(`core.shards.shard`); answers are appended in the order of the log, several together, and are acknowledged before a
snapshot says that they are given. A shard that is started again continues behind its snapshot and may answer to some
messages again, with the same bytes. Answers need no transaction.

A shard without a snapshot reads the log and the outcomes from the beginning. Messages that its partition has an answer
to, of any replica, are then applied without one.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dedup_service.core.errors import StateError
from dedup_service.core.shards.shard import Shard
from dedup_service.runtime.events import BatchEvent, IndexEvent, Observer, ProblemEvent
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import AppendLostError
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import ThrottledWarning, pause_after
from dedup_service.runtime.kafka.messages.log_record import log_parts, records_in
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts, decode_outcome
from dedup_service.runtime.kafka.shards.sharded_log import WARN_AFTER_S
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica
from dedup_service.runtime.kafka.status import StepStatus, StepTimings
from dedup_service.runtime.kafka.topics import Topics

_LOG = logging.getLogger(__name__)

SHARD = "shard"

_READ_AHEAD = 32
"""Messages of the log that wait."""

_OUTCOMES_AT_ONCE = 500
_ANSWERS_AT_ONCE = 32
_IDLE_S = 0.02
_REPORT_S = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class RestoredShard:
    """A shard at a place of the log with the identity `log`.

    tail: `tail_of` its last message, "" before any. outcomes_at: offset of `outcomes` at which to continue.
    answered_to: offset of the log up to which its partition has answers; those are not given again.
    """

    shard: Shard
    log: str
    tail: str
    outcomes_at: int
    answered_to: int = -1


class ShardStep:
    """A shard's step; runs in one thread.

    log, outcomes: readers of the two topics, at their positions; the step closes them. local: its folder.
    """

    def __init__(
        self,
        topics: Topics,
        local: LocalState,
        restored: RestoredShard,
        log: LogConsumer,
        outcomes: LogConsumer,
        appender: LogAppender,
        observer: Observer,
    ) -> None:
        self._topics, self._local, self._observer = topics, local, observer
        self._shard, self._tail, self._answered_to = restored.shard, restored.tail, restored.answered_to
        self._log_id = restored.log
        self._log, self._outcomes, self._appender = log, outcomes, appender
        self._replica = ShardReplica(restored.shard)
        self._messages: deque[ConsumerRecord] = deque()
        self._begun = False
        self._known: deque[tuple[int, bytes]] = deque()  # outcomes that were read, with the offset behind each
        self._outcomes_at = restored.outcomes_at
        self._unsent: list[Message] = []
        self._timings = StepTimings()
        self._failures = 0
        self._records = self._pages = 0
        self._waits_since: float | None = None
        self._warning = ThrottledWarning(_LOG, f"shard {restored.shard.number} waits", after_s=WARN_AFTER_S)
        self._reported_at = 0.0
        self.ticked_at = time.monotonic()

    @property
    def status(self) -> StepStatus:
        """Return the status of the step, as of its last turn; may be called from any thread."""
        since = self._waits_since
        number = self._shard.number
        waits_for = f"shard {number} waits for the outcome of message {self._shard.next_outcome} of the log"
        return StepStatus(
            step=SHARD,
            ticked_at=self.ticked_at,
            assigned=(number.index,),
            buffered_pages=self._shard.undecided_pages,
            waits_for="" if since is None else waits_for,
            waits_s=0.0 if since is None else time.monotonic() - since,
        )

    def run(self, stop: threading.Event, drain_until: Callable[[], float] = time.monotonic) -> None:
        """Run the step's loop until `stop` is set. Raises what ends the step; nothing is lost then."""
        del drain_until  # what is not answered now is answered after the next start
        try:
            with self._local.pages.in_use():
                self._appender.open(stop)
                while not stop.is_set():
                    self.turn(stop)
                self._send(stop)
                if not self._begun and not self._unsent:
                    self._take_snapshot()
        finally:
            self._log.close()
            self._outcomes.close()
            self._appender.close()

    def turn(self, stop: threading.Event) -> int:
        """Read, answer, maintain the state; return the number of messages answered."""
        self.ticked_at = time.monotonic()
        with self._timings.timed("read_log"):
            if len(self._messages) < _READ_AHEAD:
                self._messages += self._log.poll(0.0, _READ_AHEAD)
            self._read_outcomes(0.0)
        answered = self._answer()
        self._send(stop)
        if not answered:
            self._wait()
        self._maintain_state()
        return answered

    def _answer(self) -> int:
        """Answer to the messages that are ready, some of them."""
        answered = 0
        with self._timings.timed("decide"):
            while self._messages and answered < _ANSWERS_AT_ONCE:
                message = self._messages[0]
                if not self._begun:
                    if self._shard.policy is not None and self._local.pages.due:
                        break  # no snapshot is taken of a message that was begun, and this may wait for long
                    parts = log_parts([message])
                    self._records = records_in(parts)
                    self._shard.begin(message.offset, parts)
                    self._begun = True
                while self._known and not self._shard.is_ready:
                    self._learn()
                if not self._shard.is_ready:
                    self._waits_since = self._waits_since or time.monotonic()
                    self._warning.about(f"for the outcome of message {self._shard.next_outcome} of the log")
                    break
                silent = message.offset <= self._answered_to
                answer = self._shard.answer(silent=silent)
                self._begun, self._tail, self._waits_since = False, tail_of(message.value), None
                self._warning.over()
                if not silent:
                    self._unsent += [
                        Message(self._topics.candidates, value, partition=self._shard.number.index - 1)
                        for value in answer_parts(answer, self._shard.number, self._log_id)
                    ]
                self._messages.popleft()
                self._local.pages.note_applied(self._records)
                self._pages += self._records
                answered += 1
        return answered

    def _learn(self) -> None:
        end, value = self._known.popleft()
        log, outcome = decode_outcome(value)
        if log != self._log_id:
            raise StateError(
                f"{self._topics.outcomes} has outcomes of log {log}, the shard is of {self._log_id}: give the "
                "--prefix and --bootstrap that belong together"
            )
        self._shard.learn(outcome)
        self._outcomes_at = end

    def _read_outcomes(self, timeout_s: float) -> int:
        if len(self._known) > _OUTCOMES_AT_ONCE:
            return 0
        records = self._outcomes.poll(timeout_s, _OUTCOMES_AT_ONCE)
        self._known += [(record.offset + 1, record.value or b"") for record in records]
        return len(records)

    def _wait(self) -> None:
        """Wait for the topic from which something must come."""
        if self._messages:
            self._read_outcomes(_IDLE_S)
        else:
            self._messages += self._log.poll(_IDLE_S, _READ_AHEAD)

    def _send(self, stop: threading.Event) -> None:
        """Append the answers; what may not be there is appended again with the next turn."""
        if not self._unsent:
            return
        with self._timings.timed("commit"):
            try:
                self._appender.append(self._unsent)
            except AppendLostError as error:
                self._failures += 1
                self._observer.problem(ProblemEvent(SHARD, "append_lost", str(error)))
                pause_after(self._failures, stop)
                return
        self._unsent, self._failures = [], 0

    def _maintain_state(self) -> None:
        """Take a snapshot if one is due, and report. Raises StoreFullError if the disk does not take the state."""
        self._local.step()
        if self._local.pages.due and not self._begun and not self._unsent:
            self._take_snapshot()
        if time.monotonic() - self._reported_at >= _REPORT_S:
            self._reported_at = time.monotonic()
            self._report()

    def _take_snapshot(self) -> None:
        written = PendingOutcomes()
        written.written_below(self._topics.outcomes, 0, self._outcomes_at)
        with self._timings.timed("snapshot"):
            self._local.take_snapshot(self._replica, written, self._tail)

    def _report(self) -> None:
        pages, self._pages = self._pages, 0
        sizes = self._shard.sizes()
        if pages:
            self._observer.batch(
                BatchEvent(
                    step=SHARD,
                    records=pages,
                    seconds=self._timings.take(),
                    sequence=self._replica.sequence,
                    entries=len(self._shard),
                )
            )
        if sizes is not None:
            self._observer.index(
                IndexEvent(entries=len(self._shard), channels=sizes.channels, cells=sizes.cells, memory=sizes.memory)
            )
