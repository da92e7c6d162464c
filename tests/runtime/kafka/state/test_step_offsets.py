"""The messages of `dedup.offsets`."""

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, ReplayMark, StepOffsets, replay_message
from dedup_service.runtime.kafka.topics import Topics


def test_every_message_is_written_where_it_is_read() -> None:
    """Offsets and marks of replays name partition 0; a key alone would choose another in a topic with several."""
    topics = Topics("news.")
    offsets = StepOffsets(Connection("nowhere:1"), topics)
    messages = [
        *offsets.messages(DECIDE, {TopicPartition(topics.pages, number): 7 for number in range(5)}),
        *(replay_message(topics, ReplayMark("log", finished=finished)) for finished in (False, True)),
    ]
    assert [message.partition for message in messages] == [0] * 7
