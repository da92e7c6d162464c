"""A message of `pages` as a record that can be prepared, here or in a worker process.

The value is the JSON object of one line of `filter`, typed by the same code (`readers.jsonlines`), so that a file
and a topic with the same pages have the same verdicts. The key is not read: a page is identified by its `url`.
Invariant: small enough names for the log, whose records must fit one message whatever a page says of itself.

What a rejected record looks like in `pages.dlq`: as it came, and why it is there.

Value, key and headers are the record's own, so that it can be mended and published again. A value that unpacks to more
than any topic takes is cut to its beginning, and says so: the whole is where the headers point, while `pages` keeps it,
and one such record does not stop the stream.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dedup_service.core.errors import RecordError
from dedup_service.core.log_records import Source
from dedup_service.core.page import Page
from dedup_service.core.url import MAX_URL_LENGTH
from dedup_service.runtime.kafka.messages.headers import Headers, passed_on
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK, page_in_json
from dedup_service.runtime.readers.record import Extract

__all__ = ["CUT_BYTES", "MAX_DEAD_LETTER_BYTES", "MAX_NAME_CHARS", "MAX_VALUE_BYTES", "PageMessage", "dead_letter"]

MAX_VALUE_BYTES = 15 << 20
"""The longest value, unpacked: fits the output topics (16 MiB) with its headers, whether it compresses or not."""

MAX_NAME_CHARS = MAX_URL_LENGTH
"""The longest `url` and `id`: they stand in the log, in verdicts and in the verdicts of their copies."""


@dataclass(frozen=True, slots=True)
class PageMessage:
    """One message: where it stands and its value, None for a null."""

    topic: str
    partition: int
    offset: int
    value: bytes | None

    @property
    def number(self) -> int:
        """Its place in its partition, from 1."""
        return self.offset + 1

    @property
    def place(self) -> str:
        """What `kafka-console-consumer` asks for."""
        return f"{self.topic}, partition {self.partition}, offset {self.offset}"

    @property
    def raw(self) -> bytes:
        """The value; nothing for a null."""
        return self.value or b""

    @property
    def identity(self) -> bytes:
        """Topic, partition and offset: the same delivery, whenever it is read."""
        return f"{self.topic}/{self.partition}/{self.offset}".encode()

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError for a null, a value too long, not a page in JSON, or names too long."""
        if self.value is None:
            raise RecordError("the value is null: a page is a JSON object with at least `url`")
        if len(self.value) > MAX_VALUE_BYTES:
            raise RecordError(f"the value has {len(self.value):,} bytes, at most {MAX_VALUE_BYTES:,} are read")
        page = page_in_json(self.value.removeprefix(BYTE_ORDER_MARK), extract)
        for name, text in (("url", page.url), ("id", page.id)):
            if len(text) > MAX_NAME_CHARS:
                raise RecordError(f"`{name}` has {len(text):,} characters, at most {MAX_NAME_CHARS:,} are read")
        return page


MAX_DEAD_LETTER_BYTES = 30 << 20
"""The longest value that is kept whole: fits `pages.dlq` (32 MiB) with its headers, whether it compresses or not."""

CUT_BYTES = 1 << 20
"""What is kept of a longer one."""


def dead_letter(
    value: bytes | None, headers: Iterable[tuple[str, bytes | None]], source: Source, sequence: int, error: str
) -> tuple[bytes | None, Headers]:
    """Return value and headers of the dead letter made of the record at `source`, which had `value` and `headers`."""
    if value is None or len(value) <= MAX_DEAD_LETTER_BYTES:
        return value, passed_on(headers, source, sequence, error=error)
    return value[:CUT_BYTES], passed_on(headers, source, sequence, error=error, cut_from_bytes=len(value))
