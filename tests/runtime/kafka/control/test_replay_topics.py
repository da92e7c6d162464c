"""What a replay writes into new topics, with a producer and a replica that only take note."""

from collections.abc import Sequence
from typing import Any, cast

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import CorrectionRecord, LogRecord, UnwrittenRecord, sequence_at
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.replay import Replayed
from dedup_service.runtime.kafka.control.replay_topics import ReplayTopics
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.topics import Topics

CORRECTION = CorrectionRecord("https://a.example/", "https://b.example/", duplicate=False, reason="")


class FakeLog:
    """A producer that places messages one after the other, and a replica without outcomes."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []

    def commit(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Append messages; return their partitions and offsets."""
        before = len(self.records)
        for message in messages:
            self.records += decode(message.value or b"")
        return [(0, offset) for offset in range(before, len(self.records))]

    def apply_many(self, records: Sequence[Any]) -> list[None]:
        """Decide nothing."""
        return [None for _ in records]


def replayed(first: int, old: Sequence[tuple[int, LogRecord]]) -> list[LogRecord]:
    """Return the new log of an old one. first: what the first message of both is numbered."""
    log = FakeLog()
    topics = ReplayTopics(Topics(), "log", cast("TransactionalProducer", log), cast("Replica", log), first=first)
    topics.take([Replayed(sequence, record) for sequence, record in old])
    return log.records


def test_lost_pages_have_new_numbers_and_those_of_bases_keep_theirs() -> None:
    """Else a page that was taken down in a base is compared with again by whoever has a copy of the base."""
    old: list[tuple[int, LogRecord]] = [
        (sequence_at(7), CORRECTION),
        (sequence_at(9), UnwrittenRecord((4, sequence_at(6), sequence_at(7)), "")),
    ]
    assert replayed(3, old) == [CORRECTION, UnwrittenRecord((4, sequence_at(3)), "")]
    assert replayed(0, [(sequence_at(9), UnwrittenRecord((4,), ""))]) == []
