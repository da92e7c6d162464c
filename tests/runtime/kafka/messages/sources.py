"""Where a passed-on record was published, as its headers say."""

from collections.abc import Iterable

from dedup_service.core.log_records import Source
from dedup_service.core.size_limits import Header


def source_in(headers: Iterable[Header]) -> Source:
    """Return the source of a passed-on record from its headers; KeyError without ours."""
    values = dict(headers)
    topic, partition, offset = (values[f"twinsieve.{name}"] or b"" for name in ("topic", "partition", "offset"))
    return Source(topic.decode(), int(partition), int(offset))
