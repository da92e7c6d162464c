"""Ask the brokers about topics; the client's exceptions become ours here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient

from dedup_service.runtime.kafka.client.connecting import connect
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import for_good, passing

__all__ = ["administration"]


@contextmanager
def administration(connection: Connection) -> Iterator[KafkaAdminClient]:
    """Yield a client for requests about topics.

    Raises UnreachableError where no broker answers, NotAuthorisedError where they refuse, BrokerError for the rest.
    """
    client: Any = connect(KafkaAdminClient, connection)
    try:
        yield client
    except (kafka.errors.KafkaError, OSError) as error:
        doing = f"a request about topics to {connection.bootstrap}"
        raise (for_good(error, doing) or passing(error, doing)) from error
    finally:
        client.close()
