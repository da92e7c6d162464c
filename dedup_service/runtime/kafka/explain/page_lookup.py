"""Pages of the log by their sequence: the record, its main text, and its past verdict.

- `LoggedPages` reads a record of the log by its sequence.
- `PageTextLookup` reads the input record that the log names from the topic `pages`, while that keeps it, and
  has its text extracted in a worker process (`workers.page_reader`), as the fingerprinting step did. A page that
  could not be judged has no text: whatever stopped its worker would do so again.
- `PastVerdicts` searches the topic `verdicts`. All verdicts of an address are in one partition, and a
  verdict is written soon after its page was logged; so that partition is read from a minute before that
  time, for up to 5 s.

Everything here is for explanations and rechecks, a few a minute; no verdict waits for it. Consumers have no
group.
"""

import time
from contextlib import ExitStack, closing

from dedup_service.core.decision.entries import entry_of_page
from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.log_records import PageRecord, is_backfilled, offset_of
from dedup_service.core.page import Page
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.explain.page_source import KnownPage
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader
from dedup_service.runtime.kafka.client.producers import partition_for
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.messages.log_head import number_log
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.page_reader import PageReader
from dedup_service.runtime.workers.preparation import UNJUDGED, BadRecord

TEXT_TIMEOUT_S = 10.0
PAGE_FETCH_BYTES = 256 << 10
"""More is fetched only where one batch is larger; the records after the one requested are not needed."""

VERDICT_TIMEOUT_S = 5.0
VERDICT_FETCH_BYTES = 1 << 20
CLOCK_SLACK_MS = 60_000
"""The clocks of two machines differ by less."""


class PageTextLookup:
    """Pages by their sequence in the log; connected on first use. One thread uses it.

    pages: reads them; whoever made it closes it.
    """

    def __init__(self, connection: Connection, topics: Topics, pages: PageReader) -> None:
        self._log = TopicPartition(topics.fingerprints, 0)
        self._reader = PartitionReader(connection, fetch_bytes=PAGE_FETCH_BYTES, timeout_s=TEXT_TIMEOUT_S)
        self._pages = pages
        self._connection, self._topics = connection, topics
        self._first: int | None = None

    def text_at(self, sequence: int) -> str | None:
        """Return the main text of the page at `sequence`.

        None if it is no longer kept, is not a page, or could not be judged, then or now. Raises UnreachableError if
        no broker gives it within 10 s, NotAuthorisedError if they refuse, WorkersError once `pages` is closed.
        """
        page = self.page_at(sequence)
        return None if page is None else page.text

    def page_at(self, sequence: int) -> Page | None:
        """As `text_at`, the whole page."""
        record = self._record_at(sequence)
        if record is None or (record.prepared.reason or "").startswith(UNJUDGED):
            return None
        source = record.source
        if is_backfilled(source.topic):  # in a file of whoever backfilled it
            return None
        message = self._reader.read_at(TopicPartition(source.topic, source.partition), source.offset)
        if message is None:
            return None
        try:
            page = self._pages.page_of(PageMessage.of(message))
        except RecordError:
            return None
        if isinstance(page, BadRecord) or page.url != record.prepared.page.url:  # the topic was created again
            return None
        return page

    def _record_at(self, sequence: int) -> PageRecord | None:
        if self._first is None:
            with closing(LogConsumer(self._connection, self._topics.fingerprints, fetch_bytes=PAGE_FETCH_BYTES)) as log:
                head = number_log(log)
            if not head.is_begun:
                return None
            self._first = head.first
        offset = offset_of(sequence)
        if offset < self._first:  # of a base
            return None
        message = self._reader.read_at(self._log, offset - self._first)
        return _page_in(message and message._replace(offset=offset), sequence)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


class LoggedPages:
    """Records of pages in the log, with their texts.

    One thread uses it; raises BrokerError if no broker answers. pages: as in `PageTextLookup`.
    """

    def __init__(self, connection: Connection, topics: Topics, pages: PageReader) -> None:
        self._stack = ExitStack()
        self._log = self._stack.enter_context(
            closing(LogConsumer(connection, topics.fingerprints, fetch_bytes=PAGE_FETCH_BYTES))
        )
        self._numbered = False
        self._texts = self._stack.enter_context(closing(PageTextLookup(connection, topics, pages)))

    def at(self, sequence: int) -> tuple[KnownPage, int] | None:
        """Return the page at `sequence` and when it was logged, Unix milliseconds.

        None if there is none.
        """
        if not self._numbered:
            self._numbered = number_log(self._log).is_begun
        offset = offset_of(sequence)
        message = self._log.read_one(offset) if self._log.first <= offset < self._log.end() else None
        record = _page_in(message, sequence)
        return None if message is None or record is None else (known_page(sequence, record), message.timestamp)

    def text(self, sequence: int) -> str | None:
        """Return the main text of a page; None if `pages` no longer keeps it."""
        return self._texts.text_at(sequence)

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()


def _page_in(message: ConsumerRecord | None, sequence: int) -> PageRecord | None:
    """Return the page at `sequence` in a message of the log, None if it has none there."""
    try:
        record = dict(numbered([] if message is None else [message])).get(sequence)
    except StateError:
        return None
    return record if isinstance(record, PageRecord) else None


def known_page(sequence: int, record: PageRecord) -> KnownPage:
    """Return the page of a record, without its verdict."""
    page = record.prepared.page
    return KnownPage(
        id=page.id,
        url=page.url,
        canonical_url=page.canonical_url,
        title=page.title,
        entry=entry_of_page(sequence, record.prepared, url_hash(page.canonical_url)),
    )


class PastVerdicts:
    """Verdicts of pages by their sequence; connected on first use. One thread uses it."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._topic = topics.verdicts
        self._reader = PartitionReader(connection, fetch_bytes=VERDICT_FETCH_BYTES, timeout_s=VERDICT_TIMEOUT_S)

    def find(self, sequence: int, canonical_url: str, logged_ms: int) -> Verdict | None:
        """Return the verdict of the page at `sequence`.

        None if it is no longer kept, or not found in 5 s. Raises UnreachableError if it cannot connect
        to any broker, NotAuthorisedError if they refuse.
        """
        self._reader.connect()
        try:
            return self._search(sequence, page_key(canonical_url), logged_ms, time.monotonic() + VERDICT_TIMEOUT_S)
        except UnreachableError:
            return None

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _search(self, sequence: int, key: bytes, logged_ms: int, deadline: float) -> Verdict | None:
        partitions = self._reader.partitions_of(self._topic)
        if not partitions:
            return None
        partition = partitions[partition_for(key, len(partitions))]
        start = self._reader.offset_at(partition, max(0, logged_ms - CLOCK_SLACK_MS))
        if start is None:
            return None
        ends = self._reader.ends([partition])
        self._reader.assign({partition: start})
        for batch in self._reader.read(ends):
            for record in batch:
                if record.key == key and (verdict := _read(record.value)) is not None and verdict.sequence == sequence:
                    return verdict
            if time.monotonic() > deadline:
                return None
        return None


def _read(value: bytes | None) -> Verdict | None:
    try:
        return read_verdict(value or b"")[0]
    except ValueError:
        return None
