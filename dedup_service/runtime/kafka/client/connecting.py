"""Make a client of the library: connected, or an error that says what to check, and nothing left behind.

The library's constructors connect. Where that fails they raise and leave behind what they had begun: a consumer's
network thread, sockets. So the network side is made by us (`kafka_client` is the library's own setting for that) and
closed by us. And every reason shows as `Unable to bootstrap`: `diagnosis` finds out which it was.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kafka import errors

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.client_faults import PatientClient, check_client_release
from dedup_service.runtime.kafka.client.diagnosis import diagnose
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import for_good

__all__ = ["connect"]

T = TypeVar("T")


def connect(kind: Callable[..., T], connection: Connection, **configs: Any) -> T:
    """Return a client of the class `kind` (`configs` are its own settings).

    Raises UnreachableError where no broker answers within `bootstrap_timeout_ms`, NotAuthorisedError where they refuse
    user or password, ConfigurationError for settings that cannot work.
    """
    check_client_release()
    made: list[PatientClient] = []

    def network(**settings: Any) -> PatientClient:
        made.append(PatientClient(**settings))
        return made[-1]

    try:
        return kind(**connection.configs(kafka_client=network, **configs))
    except (errors.KafkaError, OSError, ValueError) as error:
        for unused in made:
            with suppress(errors.KafkaError, OSError, RuntimeError):
                unused.close()
        raise _explained(error, connection) from error


def _explained(error: Exception, connection: Connection) -> Exception:
    doing = f"to connect to {connection.bootstrap}"
    if found := for_good(error, doing):
        return found
    if isinstance(error, errors.KafkaError):
        return UnreachableError(f"no broker at {connection.bootstrap}: {diagnose(connection)}")
    return ConfigurationError(f"cannot connect to {connection.bootstrap}: {error}")
