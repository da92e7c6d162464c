"""Pages of the log by their sequence, with their texts while the topic `pages` keeps them."""

from contextlib import ExitStack, closing

from dedup_service.core.changelog import PageRecord
from dedup_service.core.entries import Entry
from dedup_service.core.errors import StateError
from dedup_service.core.url import url_hash
from dedup_service.runtime.kafka.client.clients import Connection, LogReader
from dedup_service.runtime.kafka.page_texts import PageTexts
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.log_record import decode
from dedup_service.runtime.why.pages import KnownPage

__all__ = ["LoggedPages", "known_page"]

FETCH_BYTES = 256 << 10


class LoggedPages:
    """One thread uses it. Methods raise BrokerError where the brokers do not answer."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._stack = ExitStack()
        self._log = self._stack.enter_context(
            closing(LogReader(connection, topics.fingerprints, fetch_bytes=FETCH_BYTES))
        )
        self._texts = self._stack.enter_context(closing(PageTexts(connection, topics)))

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
        entry=Entry.of(sequence, record.prepared, url_hash(page.canonical_url)),
    )
