"""Ask the brokers about topics; the client's exceptions become ours here."""

from collections.abc import Iterator
from contextlib import contextmanager

import kafka.errors
from kafka import KafkaAdminClient

from dedup_service.runtime.kafka.errors import BrokerError, NotAuthorisedError, UnreachableError
from dedup_service.runtime.kafka.settings import Connection

__all__ = ["administration"]


@contextmanager
def administration(connection: Connection) -> Iterator[KafkaAdminClient]:
    """Yield a client for requests about topics.

    Raises UnreachableError where no broker answers, NotAuthorisedError where they refuse, BrokerError for the rest.
    """
    configs = {name: value for name, value in connection.configs().items() if name in KafkaAdminClient.DEFAULT_CONFIG}
    try:
        client = KafkaAdminClient(**configs)
        try:
            yield client
        finally:
            client.close()
    except (kafka.errors.KafkaTimeoutError, kafka.errors.KafkaConnectionError) as error:
        raise UnreachableError(
            f"no broker answered at {connection.bootstrap} ({error}): check the address, and where the brokers ask for"
            " TLS or a password, the certificate authority, user and password"
        ) from error
    except (kafka.errors.AuthorizationError, kafka.errors.SaslAuthenticationFailedError) as error:
        raise NotAuthorisedError(f"the brokers at {connection.bootstrap} refuse this user: {error}") from error
    except kafka.errors.KafkaError as error:
        raise BrokerError(f"the brokers at {connection.bootstrap} answered: {error}") from error
