"""The main text of a page of the log, read again from the topic `pages` while that keeps it.

How: the log has, at the page's sequence, which input record it was; that record is read by its offset, and its text is
extracted as the fingerprinting step did. A consumer of its own, without a group; it is connected when it is first
needed. For explanations and later checks, a few a minute: no verdict waits for it.
"""

import time

from kafka import KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.changelog import PageRecord
from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.runtime.extraction_cache import ExtractionCache
from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.consumers import consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.log_record import decode
from dedup_service.runtime.kafka.wire.page import PageMessage

__all__ = ["PageTexts"]

ANSWER_S = 10.0
CLOSE_S = 5.0
POLL_MS = 100
FETCH_BYTES = 256 << 10
"""More than that comes only where one batch is larger; what follows the record is not wanted."""


class PageTexts:
    """Pages by their sequence in the log. One thread uses it."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._connection = connection
        self._topics = topics
        self._consumer: KafkaConsumer | None = None
        self._extractions = ExtractionCache()

    def text_at(self, sequence: int) -> str | None:
        """Return the main text of the page at `sequence`; None where it is kept no longer, or is no page.

        Raises UnreachableError where the brokers do not give it within 10 s, NotAuthorisedError where they refuse.
        """
        page = self.page_at(sequence)
        return None if page is None else page.text

    def page_at(self, sequence: int) -> Page | None:
        """As `text_at`, the whole page."""
        logged = self._read(TopicPartition(self._topics.fingerprints, 0), sequence)
        if logged is None:
            return None
        try:
            record = decode(logged.value or b"")
        except StateError:
            return None
        if not isinstance(record, PageRecord):
            return None
        source = record.source
        found = self._read(TopicPartition(source.topic, source.partition), source.offset)
        if found is None:
            return None
        try:
            return PageMessage(source.topic, source.partition, source.offset, found.value).page(self._extract)
        except RecordError:
            return None

    def close(self) -> None:
        """Let go of the connection."""
        if self._consumer is not None:
            inside.close_consumer(self._consumer, CLOSE_S)

    def _read(self, at: TopicPartition, offset: int) -> ConsumerRecord | None:
        """Return the record at `offset`, None where it is not there any more."""
        if self._consumer is None:
            self._consumer = consumer(self._connection, FETCH_BYTES)
        self._consumer.assign([at])
        self._consumer.seek(at, offset)
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            try:
                records = self._consumer.poll(timeout_ms=POLL_MS, max_records=1).get(at, [])
            except (errors.OffsetOutOfRangeError, errors.LogTruncationError):
                return None
            except PASSING as error:
                if found := for_good(error, f"to read {at.topic}"):
                    raise found from error
                time.sleep(POLL_MS / 1000)
                continue
            if records:
                return records[0] if records[0].offset == offset else None
        raise UnreachableError(f"{at.topic}, partition {at.partition} gives no record at offset {offset}; try again")

    def _extract(self, html: bytes | str, declared_encoding: str | None) -> Extraction:
        return self._extractions.extract(html, declared_encoding=declared_encoding)
