"""Messages of `pages`: read as pages, refused if oversized, and made into dead letters if rejected.

The value is the JSON object of one line of `filter`, decoded by the same code (`readers.jsonlines`), so a
file and a topic with the same pages have the same verdicts. The key is not read: a page is identified by its
`url`.

Size limits (`core.size_limits`): a value over `MAX_VALUE_BYTES` is refused (`refuse_oversized`), and so is a
`url` or `id` over `MAX_NAME_CHARS` (`refuse_long_names`), so that the record of a page in the log fits one
message whatever the page contains. A text over `MAX_PAGE_SIZE` in a smaller value is not refused: the page is
`undecided` (`readers.jsonlines`).

A dead letter is the rejected record in `pages.dlq`: its own value, key and headers, so that it can be
corrected and published again, and the reason as a header. A value larger than any topic accepts is cut to
its beginning, with its size in a header; the headers point to the whole record, as long as `pages` keeps it.
One such record does not stop the stream.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dedup_service.core.errors import RecordError
from dedup_service.core.log_records import Source
from dedup_service.core.page import Page
from dedup_service.core.size_limits import name_too_long, value_too_large
from dedup_service.runtime.kafka.messages.headers import Headers, passed_on
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK, page_in_json
from dedup_service.runtime.readers.record import Extract

__all__ = [
    "CUT_BYTES",
    "MAX_DEAD_LETTER_BYTES",
    "PageMessage",
    "dead_letter",
    "refuse_long_names",
    "refuse_oversized",
]

MAX_DEAD_LETTER_BYTES = 30 << 20
"""Size limit of a value kept whole: fits `pages.dlq` (32 MiB) with headers, however it compresses."""

CUT_BYTES = 1 << 20
"""Size of the beginning that is kept of a larger value."""


@dataclass(frozen=True, slots=True)
class PageMessage:
    """A message of `pages`: its place, and its value or None for a null. Implements `Record`."""

    topic: str
    partition: int
    offset: int
    value: bytes | None

    @property
    def number(self) -> int:
        """Position in its partition, from 1."""
        return self.offset + 1

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
        """Return the page; RecordError for a null, not a page in JSON, an oversized value or long names."""
        if self.value is None:
            raise RecordError("the value is null: a page is a JSON object with at least `url`")
        refuse_oversized(self.value)
        page = page_in_json(self.value.removeprefix(BYTE_ORDER_MARK), extract)
        refuse_long_names(page)
        return page


def refuse_oversized(value: bytes) -> None:
    """Raise RecordError for a value over `MAX_VALUE_BYTES`."""
    if (problem := value_too_large(value)) is not None:
        raise RecordError(problem)


def refuse_long_names(page: Page) -> None:
    """Raise RecordError for a `url` or `id` over `MAX_NAME_CHARS`."""
    for name, text in (("url", page.url), ("id", page.id)):
        if (problem := name_too_long(name, text)) is not None:
            raise RecordError(problem)


def dead_letter(
    value: bytes | None, headers: Iterable[tuple[str, bytes | None]], source: Source, sequence: int, error: str
) -> tuple[bytes | None, Headers]:
    """Return value and headers of the dead letter for the record at `source` with `value` and `headers`."""
    if value is None or len(value) <= MAX_DEAD_LETTER_BYTES:
        return value, passed_on(headers, source, sequence, error=error)
    return value[:CUT_BYTES], passed_on(headers, source, sequence, error=error, cut_from_bytes=len(value))
