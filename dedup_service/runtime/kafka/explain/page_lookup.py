"""The main text of a page of the log, read again from the topic `pages` while that keeps it.

How: the log has, at the page's sequence, which input record it was; that record is read by its offset, and its text is
extracted as the fingerprinting step did. A consumer of its own, without a group; it is connected when it is first
needed. For explanations and later checks, a few a minute: no verdict waits for it.

Pages of the log by their sequence, with their texts while the topic `pages` keeps them.

A verdict of the past, from the topic `verdicts`: found by time, since it was written soon after the page was logged.

One partition has the verdicts of an address; it is read from a minute before that time, for some seconds. Nothing but
an explanation waits for it.
"""

import time
from contextlib import ExitStack, closing

from kafka import KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.decision.entries import Entry
from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.extraction import Extraction
from dedup_service.core.log_records import PageRecord
from dedup_service.core.page import Page
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.explain.page_source import KnownPage
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import murmur2
from dedup_service.runtime.kafka.client.retry import TRANSIENT, permanent_error
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.extraction_cache import ExtractionCache

__all__ = ["LoggedPages", "PageTextLookup", "PastVerdicts", "known_page"]

ANSWER_S = 10.0
CLOSE_S = 5.0
POLL_MS = 100
FETCH_BYTES = 256 << 10
"""More than that comes only where one batch is larger; what follows the record is not wanted."""


class PageTextLookup:
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
            internals.close_consumer(self._consumer, CLOSE_S)

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
            except TRANSIENT as error:
                if found := permanent_error(error, f"to read {at.topic}"):
                    raise found from error
                time.sleep(POLL_MS / 1000)
                continue
            if records:
                return records[0] if records[0].offset == offset else None
        raise UnreachableError(f"{at.topic}, partition {at.partition} gives no record at offset {offset}; try again")

    def _extract(self, html: bytes | str, declared_encoding: str | None) -> Extraction:
        return self._extractions.extract(html, declared_encoding=declared_encoding)


class LoggedPages:
    """One thread uses it. Methods raise BrokerError where the brokers do not answer."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._stack = ExitStack()
        self._log = self._stack.enter_context(
            closing(LogConsumer(connection, topics.fingerprints, fetch_bytes=FETCH_BYTES))
        )
        self._texts = self._stack.enter_context(closing(PageTextLookup(connection, topics)))

    def at(self, sequence: int) -> tuple[KnownPage, int] | None:
        """Return the page at `sequence` and when it was logged, Unix milliseconds; None where there is none."""
        record = self._log.read_one(sequence) if 0 <= sequence < self._log.end() else None
        if record is None or record.offset != sequence:
            return None
        try:
            value = decode(record.value or b"")
        except StateError:
            return None
        return (known_page(sequence, value), record.timestamp) if isinstance(value, PageRecord) else None

    def text(self, sequence: int) -> str | None:
        """Return the main text of a page; None where `pages` keeps it no longer."""
        return self._texts.text_at(sequence)

    def close(self) -> None:
        """Let go of the connections."""
        self._stack.close()


def known_page(sequence: int, record: PageRecord) -> KnownPage:
    """Return the page of a record, its verdict left out."""
    page = record.prepared.page
    return KnownPage(
        id=page.id,
        url=page.url,
        canonical_url=page.canonical_url,
        title=page.title,
        entry=Entry.from_page(sequence, record.prepared, url_hash(page.canonical_url)),
    )


SLACK_MS = 60_000
"""Clocks of two machines differ by less."""

ANSWER_S, CLOSE_S = 5.0, 5.0
POLL_MS, AT_ONCE = 100, 2000
VERDICT_FETCH_BYTES = 1 << 20


class PastVerdicts:
    """One thread uses it; connected when it is first needed."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._connection = connection
        self._topic = topics.verdicts
        self._consumer: KafkaConsumer | None = None

    def find(self, sequence: int, canonical_url: str, logged_ms: int) -> Verdict | None:
        """Return the verdict of the page at `sequence`; None where it is kept no longer, or not found in 5 s.

        Raises UnreachableError where no broker can be connected to, NotAuthorisedError where they refuse.
        """
        if self._consumer is None:
            self._consumer = consumer(self._connection, VERDICT_FETCH_BYTES)
        deadline = time.monotonic() + ANSWER_S
        try:
            return self._search(self._consumer, sequence, page_key(canonical_url), logged_ms, deadline)
        except errors.OffsetOutOfRangeError:
            return None
        except TRANSIENT as error:
            if found := permanent_error(error, f"to read {self._topic}"):
                raise found from error
            return None

    def close(self) -> None:
        """Let go of the connection."""
        if self._consumer is not None:
            internals.close_consumer(self._consumer, CLOSE_S)

    def _search(
        self, reader: KafkaConsumer, sequence: int, key: bytes, logged_ms: int, deadline: float
    ) -> Verdict | None:
        numbers = reader.partitions_for_topic(self._topic)
        if not numbers:
            return None
        at = TopicPartition(self._topic, (murmur2(key) & 0x7FFFFFFF) % len(numbers))
        reader.assign([at])
        start = reader.offsets_for_times({at: max(0, logged_ms - SLACK_MS)}).get(at)
        if start is None:
            return None
        reader.seek(at, start.offset)
        end = reader.end_offsets([at])[at]
        while time.monotonic() < deadline and internals.position(reader, at, start.offset) < end:
            for record in reader.poll(timeout_ms=POLL_MS, max_records=AT_ONCE).get(at, []):
                if record.key == key and (verdict := _read(record.value)) is not None and verdict.sequence == sequence:
                    return verdict
        return None


def _read(value: bytes | None) -> Verdict | None:
    try:
        return read_verdict(value or b"")[0]
    except ValueError:
        return None
