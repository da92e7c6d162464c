"""Size limits of pages and of the records that carry them: each limit with its reason, and the check for it.

A check returns the reason as text, or None if the size is within the limit. The caller decides what follows:

    limit               enforced by                                        beyond it
    `MAX_PAGE_SIZE`     `core.extraction.from_html` for HTML,              the page is `undecided`
                        `runtime.readers.jsonlines` for text
    `MAX_RECORD_BYTES`  `runtime.readers.jsonlines` for lines,             a bad record
                        `runtime.readers.warc` for WARC records
    `MAX_VALUE_BYTES`   `runtime.kafka.messages.page`                      a cut dead letter
    `MAX_KEY_BYTES`     `runtime.kafka.messages.page`                      a cut dead letter
    `MAX_HEADERS`, `MAX_HEADERS_BYTES`
                        `runtime.kafka.messages.page`                      a cut dead letter
    `MAX_BATCH_BYTES`   `runtime.kafka.client.unpacking`                   dead letters
    `MAX_NAME_CHARS`    `runtime.kafka.messages.page`, for `url` and `id`  a dead letter
    `MAX_URL_CHARS`     `core.url`                                         not a Web address

The readers of folders and WARC files read one byte more than `MAX_PAGE_SIZE`, so that extraction sees that a
page is too large without the rest of it.

Kafka records: the limits on value, key and headers are sizes before compression, and what the service writes
about a record within them is bounded too: `PAGE_MESSAGE_BYTES` for a page or a dead letter,
`EVENT_MESSAGE_BYTES` for a record of the log or a verdict. Topics must accept such messages as they are:
how well a message compresses depends on the codec, and a broker may compress again (`compression.type`). The
same 14 MiB took 14 times as many bytes with lz4 as with zstd. Bytes that do not compress grow: by 83 bytes a
MiB with lz4, 340 with gzip and snappy (the client's encoders, random bytes).
"""

from collections.abc import Iterable, Sequence

MAX_PAGE_SIZE = 10 << 20
"""Limit on HTML and on text: bytes of HTML as fetched, characters of decoded HTML and of text.

Articles are far smaller; Google indexes 2 MB of HTML, and 10 MB are parsed in about 0.3 s. A larger page
cannot be judged: it is passed on, with the reason.
"""

MAX_RECORD_BYTES = 300 * 2**20
"""A longer record is not kept in memory but reported as bad. A 50-MB page with every character escaped fits."""

MAX_VALUE_BYTES = 15 << 20
"""Limit on a Kafka value, unpacked: a text of `MAX_PAGE_SIZE` in ASCII, and half as much for the rest."""

MAX_URL_CHARS = 8192
"""Limit on a Web address."""

MAX_KEY_BYTES = 12 * MAX_URL_CHARS
"""Limit on a Kafka key: fits every canonical URL, a character of which is 4 bytes, percent-encoded 12."""

MAX_HEADERS = 256
"""Limit on the headers of a Kafka record: tracing and CloudEvents use about 10; each takes 150 bytes of memory."""

MAX_HEADERS_BYTES = 512 << 10
"""Limit on names and values of all headers of a Kafka record: many times what tracing or a Web server use."""

MAX_BATCH_BYTES = 128 << 20
"""Limit on a batch of Kafka records, unpacked: 16 times the largest batch of `pages` as it is created, and the
memory of a reader, which unpacks a batch as a whole. Producers send batches of some 100 KiB, or one record."""

HEADER_OBJECTS_BYTES = 150
"""Memory of a header beside its bytes: str, bytes and tuple, in CPython 3.11."""

UNREADABLE_HEADER = "twinsieve.unreadable"
"""Header that a record of a larger batch has instead of its content."""

PAGE_MESSAGE_BYTES = 16 << 20
"""What a topic must accept that pages or dead letters are written to: the limits above, our own headers (the
longest has the URL of another page, 32 KiB), framing, and what compression may add; 0.3 MiB are left."""

EVENT_MESSAGE_BYTES = 1 << 20
"""What a topic must accept that records of the log or verdicts are written to: measured 366 KB for the longest
addresses that a page may have, all of which are percent-encoded in its canonical URL, its claim and its key."""

Header = tuple[str, bytes | None]
"""Name and value of a header of a Kafka record."""

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
    """Return why the value of a Kafka record is refused."""
    if len(value) <= MAX_VALUE_BYTES:
        return None
    return f"the value has {len(value):,} bytes, the limit is {MAX_VALUE_BYTES:,}"


def key_too_large(key: bytes | None) -> str | None:
    """Return why the key of a Kafka record is refused."""
    if key is None or len(key) <= MAX_KEY_BYTES:
        return None
    return f"the key has {len(key):,} bytes, the limit is {MAX_KEY_BYTES:,}"


def headers_too_large(headers: Sequence[Header]) -> str | None:
    """Return why the headers of a Kafka record are refused: too many, or too large together."""
    if len(headers) > MAX_HEADERS:
        return f"it has {len(headers):,} headers, the limit is {MAX_HEADERS}"
    size = header_bytes(headers)
    if size <= MAX_HEADERS_BYTES:
        return None
    return f"the headers have {size:,} bytes, the limit is {MAX_HEADERS_BYTES:,}"


def header_bytes(headers: Iterable[Header]) -> int:
    """Return the bytes of the names, in UTF-8, and of the values."""
    return sum(len(name.encode("utf-8", "replace")) + len(value or b"") for name, value in headers)


def name_too_long(field: str, name: str) -> str | None:
    """Return why `name`, the `url` or `id` of a Kafka message as `field` says, is refused."""
    if len(name) <= MAX_NAME_CHARS:
        return None
    return f"`{field}` has {len(name):,} characters, the limit is {MAX_NAME_CHARS:,}"
