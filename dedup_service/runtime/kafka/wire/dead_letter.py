"""What a rejected record looks like in `pages.dlq`: as it came, and why it is there.

Value, key and headers are the record's own, so that it can be mended and published again; the headers added name
the error and the place it stood at. Kafka Connect does the same under `__connect.errors.*` (KIP-298).
"""

from collections.abc import Iterable

from dedup_service.core.changelog import Source
from dedup_service.runtime.kafka.wire.headers import Headers, passed_on

__all__ = ["dead_letter_headers"]


def dead_letter_headers(
    headers: Iterable[tuple[str, bytes | None]], source: Source, sequence: int, error: str
) -> Headers:
    """Return the headers of the dead letter made of the record at `source`, whose own were `headers`."""
    return passed_on(headers, source, sequence, error=error)
