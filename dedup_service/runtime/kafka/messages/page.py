"""Messages of `pages`: read as pages, refused if oversized, and made into dead letters if rejected.

The value is the JSON object of one line of `filter`, decoded by the same code (`readers.jsonlines`), so a
file and a topic with the same pages have the same verdicts. The key is not read: a page is identified by its
`url`.

Size limits (`core.size_limits`), so that whatever is written about an accepted record fits its topic:

- Value, key, number and size of the headers (`size_problem`). They are checked when a record is taken over
  from the consumer (`PageMessage.of`): the bytes of a refused one go neither to a queue nor to a worker.
- `url` and `id` (`refuse_long_names`), which are in the log, in the verdict, and in the verdicts of copies.
- A text over `MAX_PAGE_SIZE` in a smaller value is not refused: the page is `undecided` (`readers.jsonlines`).

A dead letter is the rejected record in `pages.dlq`: its own value, key and headers, so that it can be
corrected and published again, and the reason as a header. A part beyond its limit is cut, and a header has
its size; other headers point to the whole record, as long as `pages` keeps it. So a dead letter fits its
topic whatever the record was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dedup_service.core.errors import RecordError
from dedup_service.core.log_records import Source
from dedup_service.core.page import Page
from dedup_service.core.size_limits import (
    HEADER_OBJECTS_BYTES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    UNREADABLE_HEADER,
    Header,
    header_bytes,
    headers_too_large,
    key_too_large,
    name_too_long,
    value_too_large,
)
from dedup_service.runtime.kafka.messages.headers import Headers, passed_on
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK, JsonRecord
from dedup_service.runtime.readers.record import Extract, Mark

if TYPE_CHECKING:  # a worker reads pages without the client library
    from dedup_service.runtime.kafka.client.connect import ConsumerRecord

CUT_BYTES = 1 << 20
"""Size of the beginning that is kept of a value over its limit."""

CUT_KEY_BYTES = 1 << 10
"""Size of the beginning that is kept of a key over its limit."""

_MAX_ERROR_BYTES = 4 << 10


def record_size(record: "ConsumerRecord") -> int:
    """Return the memory that a consumed record takes: key, value, headers and their objects, in bytes."""
    headers = record.headers or ()
    return (
        len(record.value or b"") + len(record.key or b"") + header_bytes(headers) + HEADER_OBJECTS_BYTES * len(headers)
    )


def size_problem(record: "ConsumerRecord") -> str | None:
    """Return why a consumed record is refused: value, key, headers or its batch are too large. None if not."""
    if record.key is None and record.value is None and len(record.headers or ()) == 1:
        ((name, reason),) = record.headers
        if name == UNREADABLE_HEADER:
            return (reason or b"").decode("utf-8", "replace")
    return value_too_large(record.value or b"") or key_too_large(record.key) or headers_too_large(record.headers or ())


@dataclass(frozen=True, slots=True)
class PageMessage(JsonRecord):
    """A message of `pages`: its place, and its value or None for a null. Implements `Record`.

    problem: why it was refused by its size; its value is None then.
    """

    topic: str
    partition: int
    offset: int
    value: bytes | None
    problem: str | None = None

    @classmethod
    def of(cls, record: "ConsumerRecord") -> "PageMessage":
        """Return the message of a consumed record, without the value of an oversized one."""
        problem = size_problem(record)
        value = record.value if problem is None else None
        return cls(record.topic, record.partition, record.offset, value, problem)

    @property
    def number(self) -> int:
        """Position in its partition, from 1."""
        return self.offset + 1

    @property
    def mark(self) -> Mark:
        """The next offset."""
        return Mark(self.number, self.offset + 1)

    @property
    def place(self) -> str:
        """Topic, partition and offset, as `kafka-console-consumer` takes them."""
        return f"{self.topic}, partition {self.partition}, offset {self.offset}"

    @property
    def raw(self) -> bytes:
        """The value; empty for a null."""
        return self.value or b""

    @property
    def identity(self) -> bytes:
        """Topic, partition and offset: they identify the delivery however often it is read."""
        return f"{self.topic}/{self.partition}/{self.offset}".encode()

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError for an oversized record, a null, not a page in JSON, or long names."""
        return _named(JsonRecord.page(self, extract))

    def text_page(self) -> Page | None:
        """Return the page if the value is short and has a text, None for others; RecordError as `page`."""
        page = JsonRecord.text_page(self)
        return None if page is None else _named(page)

    def unread(self) -> Page:
        """Return the page with `url` and `id` alone; RecordError as `page`."""
        return _named(JsonRecord.unread(self))

    def _json(self) -> bytes:
        if self.problem is not None:
            raise RecordError(self.problem)
        if self.value is None:
            raise RecordError("the value is null: a page is a JSON object with at least `url`")
        return self.value.removeprefix(BYTE_ORDER_MARK)


def _named(page: Page) -> Page:
    refuse_long_names(page)
    return page


def refuse_long_names(page: Page) -> None:
    """Raise RecordError for a `url` or `id` over `MAX_NAME_CHARS`."""
    for name, text in (("url", page.url), ("id", page.id)):
        if (problem := name_too_long(name, text)) is not None:
            raise RecordError(problem)


class DeadLetter(NamedTuple):
    """What is written to `pages.dlq` for one record."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def dead_letter(
    record: "ConsumerRecord",
    sequence: int,
    error: str,
    *,
    verdict: str | None = None,
    max_value_bytes: int = MAX_VALUE_BYTES,
    max_key_bytes: int = MAX_KEY_BYTES,
    max_headers: int = MAX_HEADERS,
) -> DeadLetter:
    """Return the dead letter for a consumed record.

    sequence: of its record in the log. error: why it is one. verdict: of a page that cannot be passed on.
    max_…: of the parts that are kept whole. Beyond them, the beginning of value and key is kept, `CUT_BYTES`
    and `CUT_KEY_BYTES` at most, and of the headers those that fit. The value is empty if there is neither key
    nor value: kafka-python reads such records and cannot write them.
    """
    value = _beginning(record.value, max_value_bytes, CUT_BYTES)
    key = _beginning(record.key, max_key_bytes, CUT_KEY_BYTES)
    theirs = record.headers or ()
    kept = _that_fit(theirs, max_headers)
    headers = passed_on(
        kept,
        Source(record.topic, record.partition, record.offset),
        sequence,
        verdict=verdict,
        error=error.encode("utf-8", "replace")[:_MAX_ERROR_BYTES].decode("utf-8", "ignore"),
        cut_from_bytes=None if value is record.value else len(record.value or b""),
        cut_key_from_bytes=None if key is record.key else len(record.key or b""),
        cut_headers_from_bytes=None if len(kept) == len(theirs) else header_bytes(theirs),
    )
    return DeadLetter(key, b"" if key is None and value is None else value, headers)


def _beginning(content: bytes | None, limit: int, cut: int) -> bytes | None:
    """Return `content`, its beginning if it is longer than `limit`, or None if nothing is to be kept."""
    if content is None or len(content) <= limit:
        return content
    return content[: min(limit, cut)] or None


def _that_fit(headers: Sequence[Header], most: int) -> list[Header]:
    """Return the first headers that fit the limits; one that is too large is left out, later ones are not."""
    kept: list[Header] = []
    left = MAX_HEADERS_BYTES
    for header in headers:
        size = header_bytes((header,))
        if size <= left and len(kept) < most:
            kept.append(header)
            left -= size
    return kept
