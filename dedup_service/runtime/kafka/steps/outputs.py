"""What is written of one input record, once its outcome is known.

A page: its verdict, and, unless the action drops it, the page as it came (value, key and headers, ours added) to
`pages.unique` or `pages.duplicate`. A record that is no page: itself, to `pages.dlq`, with the reason.
"""

from collections.abc import Iterator

from dedup_service.core.changelog import Source
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.kafka.client.clients import ConsumerRecord, Message
from dedup_service.runtime.kafka.steps.outcomes import PendingOutcome
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.dead_letter import dead_letter
from dedup_service.runtime.kafka.wire.headers import passed_on, verdict_headers

__all__ = ["outputs_of"]

STORED = frozenset({VerdictKind.UNIQUE, VerdictKind.UPDATED, VerdictKind.UNDECIDED})
"""Verdicts whose pages go to `pages.unique`. The store behind Kafka cannot lose a page, so `unchanged` does not."""


def outputs_of(topics: Topics, record: ConsumerRecord, outcome: PendingOutcome) -> Iterator[Message]:
    """Yield the messages of the consumed `record`."""
    source = Source(record.topic, record.partition, record.offset)
    if outcome.kind is None:
        error = outcome.value.decode("utf-8", "replace")
        value, headers = dead_letter(record.value, record.headers, source, outcome.sequence, error)
        yield Message(topics.dlq, value, record.key, headers)
        return
    yield Message(topics.verdicts, outcome.value, outcome.key, verdict_headers(source, topics.verdicts))
    if not outcome.drop:
        target = topics.unique if outcome.kind in STORED else topics.duplicate
        headers = passed_on(record.headers, source, outcome.sequence, verdict=outcome.kind, of_url=outcome.of_url)
        yield Message(target, record.value, outcome.key if record.key is None else record.key, headers)
