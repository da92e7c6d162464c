"""Size limits of pages and of the records that carry them: each limit with its reason, and the check for it.

A check returns the reason as text, or None if the size is within the limit. The caller decides what follows:

    limit               enforced by                                        beyond it
    `MAX_PAGE_SIZE`     `core.extraction.from_html` for HTML,              the page is `undecided`
                        `runtime.readers.jsonlines` for text
    `MAX_RECORD_BYTES`  `runtime.readers.jsonlines` for lines,             a bad record
                        `runtime.readers.warc` for WARC records
    `MAX_VALUE_BYTES`   `runtime.kafka.messages.page`                      a dead letter
    `MAX_NAME_CHARS`    `runtime.kafka.messages.page`, for `url` and `id`  a dead letter
    `MAX_URL_CHARS`     `core.url`                                         not a Web address

The readers of folders and WARC files read one byte more than `MAX_PAGE_SIZE`, so that extraction sees that a
page is too large without the rest of it. The size of a dead letter is bounded in `runtime.kafka.messages.page`.
"""

__all__ = [
    "MAX_NAME_CHARS",
    "MAX_PAGE_SIZE",
    "MAX_RECORD_BYTES",
    "MAX_URL_CHARS",
    "MAX_VALUE_BYTES",
    "line_too_long",
    "name_too_long",
    "page_too_large",
    "record_too_large",
    "value_too_large",
]

MAX_PAGE_SIZE = 10 << 20
"""Limit on HTML and on text: bytes of HTML as fetched, characters of decoded HTML and of text.

Articles are far smaller; Google indexes 2 MB of HTML, and 10 MB are parsed in about 0.3 s. A larger page
cannot be judged: it is passed on, with the reason.
"""

MAX_RECORD_BYTES = 300 * 2**20
"""A longer record is not kept in memory but reported as bad. A 50-MB page with every character escaped fits."""

MAX_VALUE_BYTES = 15 << 20
"""Limit on a Kafka value, unpacked: fits the outputs (16 MiB) with headers, however it compresses."""

MAX_URL_CHARS = 8192
"""Limit on a Web address."""

MAX_NAME_CHARS = MAX_URL_CHARS
"""Limit on `url` and `id` in Kafka: they are in the log, in the verdict, and in the verdicts of copies."""


def page_too_large(content: bytes | str, limit: int = MAX_PAGE_SIZE) -> str | None:
    """Return why `content`, HTML or text, is too large to judge. Bytes are counted, or characters of a str."""
    if len(content) <= limit:
        return None
    unit = "bytes" if isinstance(content, bytes) else "characters"
    return f"page too large: {len(content)} {unit}, limit {limit}"


def line_too_long(limit_bytes: int) -> str:
    """Return the reason for a line that was cut at the limit; its length is not known."""
    return f"the line is longer than {limit_bytes:,} bytes"


def record_too_large(size_bytes: int) -> str | None:
    """Return why a WARC record of that size is not kept in memory."""
    if size_bytes <= MAX_RECORD_BYTES:
        return None
    return f"the record is larger than {MAX_RECORD_BYTES:,} bytes: {size_bytes:,}"


def value_too_large(value: bytes) -> str | None:
    """Return why the value of a Kafka message is refused."""
    if len(value) <= MAX_VALUE_BYTES:
        return None
    return f"the value has {len(value):,} bytes, the limit is {MAX_VALUE_BYTES:,}"


def name_too_long(field: str, name: str) -> str | None:
    """Return why `name`, the `url` or `id` of a Kafka message as `field` says, is refused."""
    if len(name) <= MAX_NAME_CHARS:
        return None
    return f"`{field}` has {len(name):,} characters, the limit is {MAX_NAME_CHARS:,}"
