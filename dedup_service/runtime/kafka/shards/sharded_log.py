"""The log for a resolver: each message with the answers of all shards, and the outcomes written for them.

    messages = sharded.poll(timeout_s, most)   # those that all shards have answered to
    outcomes = sharded.apply(replica, message)
    sharded.flush()                            # the shards may go on

Messages are applied one by one, since shards answer to each. An outcome is appended before its shards need it: they are
a window ahead at most. An outcome that is there again, after a restart or from a second resolver, is passed over by
them, so appends need no transaction.
"""

import logging
import time
from collections import deque
from collections.abc import Callable

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.record_columns import LogPart
from dedup_service.core.shards.candidates import AnsweredNames
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import AppendLostError
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import ThrottledWarning
from dedup_service.runtime.kafka.messages.log_record import log_parts
from dedup_service.runtime.kafka.messages.shard_messages import encode_outcome
from dedup_service.runtime.kafka.shards.answer_reader import AnswerReader

_LOG = logging.getLogger(__name__)

_READ_AHEAD = 64
"""Messages of the log that wait for answers."""

_PAUSE_S = 0.1

WARN_AFTER_S = 5.0
"""For which a shard or an outcome is waited for before that is logged: a batch takes far less."""


class ShardedLog:
    """log: of pages, at its position. names: those of the replica. appender: writes to `topic`, the outcomes.

    log_id: identity of the log. on_problem: told what goes wrong and passes. lost_after_s: for which a shard is waited
    for before answers that nobody gives any more end the wait.
    """

    def __init__(
        self,
        log: LogConsumer,
        answers: AnswerReader,
        names: AnsweredNames,
        appender: LogAppender,
        topic: str,
        log_id: str,
        on_problem: Callable[[str], None] = lambda _problem: None,
        lost_after_s: float = 90.0,
    ) -> None:
        self._log, self.answers, self._names, self._appender = log, answers, names, appender
        self._topic, self._log_id, self._on_problem = topic, log_id, on_problem
        self._lost_after_s = lost_after_s
        self._messages: deque[ConsumerRecord] = deque()
        self._unsent: list[Message] = []
        self._waits_since: float | None = None
        self._waits_for = ""
        self._warning = ThrottledWarning(_LOG, "deciding waits for shards", after_s=WARN_AFTER_S)

    @property
    def position(self) -> int:
        """Offset of the first message that was not applied."""
        return int(self._messages[0].offset) if self._messages else self._log.position

    @property
    def waits(self) -> tuple[str, float]:
        """Which shards have not answered to the next message, and for how many seconds; "" and 0 if none is missing."""
        since = self._waits_since
        return (self._waits_for, 0.0 if since is None else time.monotonic() - since)

    @property
    def nameless_to(self) -> int | None:
        """Sequence up to which no name is needed: names of settled entries come with the answers. None: not known."""
        candidates = self._names.candidates
        first = None if candidates is None else candidates.first_young
        return None if first is None else first - 1

    def poll(self, timeout_s: float, most: int) -> list[ConsumerRecord]:
        """Return the next messages that all shards have answered to, at most `most`; [] if there are none yet.

        StateError if the answers to the next one are lost.
        """
        if len(self._messages) < _READ_AHEAD:
            self._messages += self._log.poll(0.0 if self._messages else timeout_s, _READ_AHEAD)
        following = self._messages[0].offset if self._messages else None
        self.answers.poll(0.0, following)
        if following is not None and not self.answers.has(following):
            self.answers.poll(timeout_s, following)
        ready: list[ConsumerRecord] = []
        while self._messages and len(ready) < most and self.answers.has(self._messages[0].offset):
            ready.append(self._messages.popleft())
        self._note_missing(moved=bool(ready))
        return ready

    def apply(self, replica: Replica, message: ConsumerRecord) -> tuple[list[LogPart], list[Outcome]]:
        """Apply a message that `poll` returned; return its parts and outcomes."""
        answers = self.answers.take(message.offset)
        parts = log_parts([message])
        if self._names.candidates is not None:
            self._names.candidates.answer(answers)
        outcomes = replica.apply_parts(parts)
        candidates = self._names.candidates
        if candidates is not None:
            value = encode_outcome(candidates.take_outcome(message.offset), self._log_id)
            self._unsent.append(Message(self._topic, value, partition=0))
        return parts, outcomes

    def flush(self) -> bool:
        """Append the outcomes of what was applied; return whether all are there. Those that are not: next time."""
        if not self._unsent:
            return True
        try:
            self._appender.append(self._unsent)
        except AppendLostError as error:
            self._on_problem(str(error))
            time.sleep(_PAUSE_S)
            return False
        self._unsent = []
        return True

    def close(self) -> None:
        """Close what was opened for shards; the log is its owner's."""
        self.answers.close()
        self._appender.close()

    def _note_missing(self, *, moved: bool) -> None:
        if moved or not self._messages:
            self._waits_since, self._waits_for = None, ""
            self._warning.over()
            return
        missing = self.answers.missing(self._messages[0].offset)
        if not missing:
            return
        if self._waits_since is None:
            self._waits_since = time.monotonic()
        shards = "shard" if len(missing) == 1 else "shards"
        have = "has" if len(missing) == 1 else "have"
        self._waits_for = (
            f"{shards} {', '.join(missing)} {have} not answered to message {self._messages[0].offset} of the log"
        )
        self._warning.about(self._waits_for)
        if self.waits[1] > self._lost_after_s:
            self.answers.require(self._messages[0].offset)
