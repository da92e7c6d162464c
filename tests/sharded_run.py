"""A log in memory, decided by one process, or by shards and a resolver, all in this process and without a broker.

Answers and outcomes take the way over the wire: they are encoded and decoded. Shards go ahead of the resolver as far as
the window lets them. Processor time is measured by part.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dedup_service.core.decision.decider import DeciderState, MutablePageNames
from dedup_service.core.decision.replica import OpenBases, Outcome, Replica, ReplicaState
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, RejectedRecord
from dedup_service.core.record_columns import LogPart
from dedup_service.core.shards.candidates import AnsweredNames, ShardCandidates
from dedup_service.core.shards.outcomes import MessageOutcome
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.kafka.messages.log_record import encode, log_parts
from dedup_service.runtime.kafka.messages.page_batch import encode_batch
from dedup_service.runtime.kafka.messages.shard_messages import (
    answer_parts,
    decode_answer,
    decode_answer_part,
    decode_outcome,
    encode_outcome,
)
from dedup_service.runtime.kafka.state.deciding_state import decode_deciding_state, encode_deciding_state
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes

LOG = "a-log"


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """A message of the log, as a consumer returns it."""

    offset: int
    value: bytes


class DictNames:
    """Names of kept pages in memory."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[str, str]] = {}

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`; KeyError if it was not added."""
        return self.names[sequence]

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Remember a kept page."""
        self.names[sequence] = page_id, url

    def erase(self, sequence: int) -> None:
        """Forget a page that was retracted."""
        self.names.pop(sequence, None)


def messages_of(batches: Sequence[Sequence[LogRecord]], first: int = 0) -> list[LoggedMessage]:
    """Return a log whose messages have these records; offsets have gaps, as behind markers. first: the first offset."""
    return [LoggedMessage(first + 2 * place, _value_of(batch)) for place, batch in enumerate(batches)]


def _value_of(batch: Sequence[LogRecord]) -> bytes:
    inputs = [record for record in batch if isinstance(record, PageRecord | RejectedRecord)]
    return encode_batch(inputs) if inputs else encode(batch[0])


def parts_of(message: LoggedMessage) -> list[LogPart]:
    """Return what a message has."""
    return log_parts([message])


def decided_alone(messages: Sequence[LoggedMessage], names: MutablePageNames | None = None) -> list[Outcome]:
    """Return the outcomes of one process with all entries."""
    replica = Replica(names or DictNames())
    return [outcome for message in messages for outcome in replica.apply_parts(parts_of(message))]


@dataclass
class ShardedRun:
    """`of` shards and a resolver.

    ahead: messages that a shard reads before its resolver, at most. names: makes those of each process. restarts:
    before these messages the resolver is made anew from its state. bases: what the log begins with. seconds: by part of
    the work; answer_bytes, outcome_bytes: of all answers and outcomes.
    """

    of: int
    ahead: int = 5
    names: Callable[[], MutablePageNames] = DictNames
    restarts: frozenset[int] = frozenset()
    bases: OpenBases | None = None
    outcomes: list[bytes] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    answer_bytes: int = 0
    outcome_bytes: int = 0

    def __post_init__(self) -> None:
        numbers = [ShardNumber(index + 1, self.of) for index in range(self.of)]
        self.shards = [Shard(number, self.names(), bases=self.bases) for number in numbers]
        self.answered = AnsweredNames(self.names())
        self.replica = self.resolver(None)
        self._answers: dict[int, dict[int, list[bytes]]] = defaultdict(dict)
        self._read = [0] * self.of
        self._begun = [False] * self.of
        self._learned = [0] * self.of

    def decoded_outcomes(self) -> list[MessageOutcome]:
        """Return what the resolver has told the shards so far."""
        return [decode_outcome(value)[1] for value in self.outcomes]

    def resolver(self, state: ReplicaState | None) -> Replica:
        """Return a resolver that goes on from a state."""

        def candidates(policy: Policy, state: DeciderState) -> ShardCandidates:
            self.answered.candidates = ShardCandidates(policy, state, self.of)
            return self.answered.candidates

        return Replica(self.answered, state=state, candidates=candidates, bases=self.bases)

    def decide(self, messages: Sequence[LoggedMessage]) -> Iterator[Outcome]:
        """Yield the outcomes of a log from its beginning."""
        return self.follow(messages)

    def follow(self, messages: Sequence[LoggedMessage]) -> Iterator[Outcome]:
        """Yield the outcomes of messages that come next."""
        self._read = [0] * self.of
        for number, message in enumerate(messages):
            for index in range(self.of):
                began = time.thread_time()
                self._go_ahead(index, number, messages)
                self.seconds[f"shard {index + 1}"] += time.thread_time() - began
            if number in self.restarts:
                state = decode_deciding_state(encode_deciding_state(self.replica.state(), PendingOutcomes()))
                self.replica = self.resolver(state.replica)
            began = time.thread_time()
            outcomes = self._resolve(message)
            self.seconds["resolver"] += time.thread_time() - began
            yield from outcomes

    def _go_ahead(self, index: int, number: int, messages: Sequence[LoggedMessage]) -> None:
        """Let a shard answer to the message `number`, and to later ones if it can."""
        shard, last = self.shards[index], min(number + (index * 7) % self.ahead, len(messages) - 1)
        while self._read[index] <= last:
            message = messages[self._read[index]]
            if not self._begun[index]:
                shard.begin(message.offset, parts_of(message))
                self._begun[index] = True
            while not shard.is_ready and self._learned[index] < len(self.outcomes):
                shard.learn(decode_outcome(self.outcomes[self._learned[index]])[1])
                self._learned[index] += 1
            if not shard.is_ready:
                if self._read[index] == number:
                    raise RuntimeError("a shard waits for the outcome of a later message")
                return
            parts = list(answer_parts(shard.answer(), shard.number, LOG))
            self.answer_bytes += sum(map(len, parts))
            self._answers[message.offset][index] = parts
            self._begun[index] = False
            self._read[index] += 1

    def _resolve(self, message: LoggedMessage) -> list[Outcome]:
        answers = []
        of_message = self._answers.pop(message.offset)
        for index in range(self.of):
            parts = [decode_answer_part(value) for value in of_message[index]]
            answers.append(decode_answer(message.offset, [part.answer for part in parts]))
        if self.answered.candidates is not None:
            self.answered.candidates.answer(answers)
        outcomes = self.replica.apply_parts(parts_of(message))
        if self.answered.candidates is not None:
            self.outcomes.append(encode_outcome(self.answered.candidates.take_outcome(message.offset), LOG))
            self.outcome_bytes += len(self.outcomes[-1])
        return outcomes
