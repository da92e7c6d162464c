"""A log decided by one process, and the same log by shards and a resolver, all in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.replica import Outcome, Replica, ReplicaState
from dedup_service.core.log_records import LogRecord, Policy
from dedup_service.core.record_columns import LogPart
from dedup_service.core.shards.answers import MessageAnswer
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
from tests.page_names import NamesInMemory

__all__ = ["Message", "Sharded", "decided_alone", "messages_of"]


@dataclass(frozen=True)
class Message:
    """A message of the log, as a consumer returns it."""

    offset: int
    value: bytes


def messages_of(batches: Sequence[Sequence[LogRecord]]) -> list[Message]:
    """A log whose messages have these records; offsets have gaps, as behind markers."""
    values = [encode(batch[0]) if len(batch) == 1 else encode_batch(batch) for batch in batches]
    return [Message(2 * place, value) for place, value in enumerate(values)]


def parts_of(message: Message) -> list[LogPart]:
    """What a message has."""
    return log_parts([message])  # type: ignore[list-item]


def decided_alone(messages: Sequence[Message]) -> list[Outcome]:
    """The outcomes of one process with all entries."""
    replica = Replica(NamesInMemory())
    return [outcome for message in messages for outcome in replica.apply_parts(parts_of(message))]


def sent(shard: Shard) -> MessageAnswer:
    """The answer of a shard, as it arrives."""
    parts = [decode_answer_part(value) for value in answer_parts(shard.answer(), shard.number, "a-log")]
    return decode_answer(parts[0].offset, [part.answer for part in parts])


@dataclass
class Sharded:
    """`of` shards and a resolver.

    ahead: messages that a shard reads before its resolver, at most. restarts: before these messages the resolver is
    made anew from its state.
    """

    of: int
    ahead: int = 5
    restarts: frozenset[int] = frozenset()
    outcomes: list[MessageOutcome] = field(default_factory=list)
    answers: dict[int, list[MessageAnswer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = [Shard(ShardNumber(index + 1, self.of), NamesInMemory()) for index in range(self.of)]
        self.names = AnsweredNames(NamesInMemory())
        self.replica = self.resolver(None)

    def resolver(self, state: ReplicaState | None) -> Replica:
        """A resolver that goes on from a state."""

        def candidates(policy: Policy, state: DeciderState) -> ShardCandidates:
            self.names.candidates = self.candidates = ShardCandidates(policy, state, self.of)
            return self.candidates

        return Replica(self.names, state=state, candidates=candidates)

    def decide(self, messages: Sequence[Message]) -> Iterator[Outcome]:
        """Yield the outcomes; shards go ahead of the resolver as far as they can, up to `ahead` messages."""
        begun: dict[int, int] = dict.fromkeys(range(self.of), 0)
        learned: dict[int, int] = dict.fromkeys(range(self.of), 0)
        pending = dict.fromkeys(range(self.of), False)
        for number, message in enumerate(messages):
            answers = []
            for index, shard in enumerate(self.shards):
                while begun[index] <= min(number + (index * 7) % self.ahead, len(messages) - 1):
                    ahead = messages[begun[index]]
                    if not pending[index]:
                        shard.begin(ahead.offset, parts_of(ahead))
                        pending[index] = True
                    while not shard.is_ready and learned[index] < len(self.outcomes):
                        shard.learn(self.outcomes[learned[index]])
                        learned[index] += 1
                    if not shard.is_ready:
                        assert begun[index] > number, "a shard waits for the outcome of a later message"
                        break
                    self.answers.setdefault(ahead.offset, [None] * self.of)[index] = sent(shard)  # type: ignore[list-item]
                    pending[index] = False
                    begun[index] += 1
            answers = self.answers.pop(message.offset)
            if number in self.restarts:
                state = decode_deciding_state(encode_deciding_state(self.replica.state(), PendingOutcomes()))
                self.replica = self.resolver(state.replica)
            if self.names.candidates is not None:
                self.candidates.answer(answers)
            outcomes = self.replica.apply_parts(parts_of(message))
            if self.names.candidates is not None:
                outcome = self.candidates.take_outcome(message.offset)
                self.outcomes.append(decode_outcome(encode_outcome(outcome, "a-log"))[1])
            yield from outcomes
