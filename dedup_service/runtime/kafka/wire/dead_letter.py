"""What a rejected record looks like in `pages.dlq`: as it came, and why it is there.

Value, key and headers are the record's own, so that it can be mended and published again. A value that unpacks to more
than any topic takes is cut to its beginning, and says so: the whole is where the headers point, while `pages` keeps it,
and one such record does not stop the stream.
"""

from collections.abc import Iterable

from dedup_service.core.changelog import Source
from dedup_service.runtime.kafka.wire.headers import Headers, passed_on

__all__ = ["CUT_BYTES", "MAX_DEAD_LETTER_BYTES", "dead_letter"]

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
