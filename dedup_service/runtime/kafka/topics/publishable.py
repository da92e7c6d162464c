"""Whether somebody may publish: a producer of pages needs one topic, and often no right to see the others."""

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.settings import Connection
from dedup_service.runtime.kafka.topics.admin import administration
from dedup_service.runtime.kafka.topics.names import Topics

__all__ = ["require_pages"]


def require_pages(connection: Connection, topics: Topics) -> None:
    """Return where `topics.pages` exists; raises ConfigurationError where it does not, BrokerError."""
    with administration(connection) as client:
        [topic] = client.describe_topics([topics.pages])
    if not topic["partitions"]:
        prefix = f" --prefix {topics.prefix}" if topics.prefix else ""
        raise ConfigurationError(
            f"there is no topic {topics.pages} at {connection.bootstrap}, or this user may not see it: "
            f"twinsieve topics create --bootstrap {connection.bootstrap}{prefix}"
        )
