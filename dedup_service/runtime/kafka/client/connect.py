"""Why no broker answers: one look at each address with plain sockets, as far as it gets.

The client reports a wrong password, a missing authority and a plaintext client on a TLS port alike. A look tells them
apart: does the name resolve, does something listen, is a TLS handshake possible, does it answer as a broker does.
Nothing secret is sent: the only request is ApiVersions, the first of every client.

Make a client of the library: connected, or an error that says what to check, and nothing left behind.

The library's constructors connect. Where that fails they raise and leave behind what they had begun: a consumer's
network thread, sockets. So the network side is made by us (`kafka_client` is the library's own setting for that) and
closed by us. And every reason shows as `Unable to bootstrap`: `diagnosis` finds out which it was.

Consumers with bounded memory that show committed records only.

Memory: a broker sends at most `fetch_bytes` at a time (more only where one batch alone is larger), and one answer a
broker may wait while another is read: `2 x fetch_bytes x brokers` as compressed on the wire, and one unpacked batch.

Ask the brokers about topics; the client's exceptions become ours here.
"""

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import kafka.errors
from kafka import KafkaAdminClient, KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.patches import PatchedKafkaClient, check_client_release, read_any_header
from dedup_service.runtime.kafka.client.retry import permanent_error, transient_error

__all__ = [
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "TopicPartition",
    "administration",
    "connect",
    "consumer",
    "diagnose",
]

_PATIENCE_S = 3.0
# ApiVersions, version 0, correlation id 1, client id "look": the same bytes since Kafka 0.10.
_BODY = struct.pack(">hhih", 18, 0, 1, 4) + b"look"
_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
_TLS_ALERT = b"\x15\x03"


def diagnose(connection: Connection) -> str:
    """Return what is wrong at each address and what to check, for people."""
    options = connection.configs()
    return "; ".join(f"{server}: {_look(server, options)}" for server in connection.servers)


def _look(server: str, options: dict[str, object]) -> str:
    host, _, port = server.rpartition(":")
    address = (host.strip("[]"), int(port)) if host else (server, 9092)
    try:
        with socket.create_connection(address, _PATIENCE_S) as plain:
            if options.get("security_protocol", "PLAINTEXT") in {"SSL", "SASL_SSL"}:
                return _look_by_tls(plain, address[0], options)
            return _answer(plain)
    except socket.gaierror:
        return "the name does not resolve; check the address"
    except ConnectionRefusedError:
        return "nothing listens there; check address and port, or start the broker"
    except TimeoutError:
        return "no answer in time; check address and firewall, or whether the broker hangs"
    except OSError as error:
        return f"{error}; check the address"


def _look_by_tls(plain: socket.socket, host: str, options: dict[str, object]) -> str:
    try:
        context = _context(options)
    except (OSError, ssl.SSLError) as error:
        return f"the certificates in ssl_cafile or ssl_certfile cannot be loaded ({error}); check the files"
    try:
        with context.wrap_socket(plain, server_hostname=host) as secure:
            return _answer(secure)
    except ssl.SSLCertVerificationError as error:
        return (
            f"its certificate is not trusted ({error.verify_message}); give the authority's PEM file as ssl_cafile, "
            "and the name that the certificate is for as address"
        )
    except ssl.SSLError as error:
        if error.reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"}:
            return "it does not speak TLS; set security_protocol to PLAINTEXT or SASL_PLAINTEXT, or use its TLS port"
        return f"no TLS connection ({error.reason or error}); the brokers may ask for a client certificate"
    except ConnectionResetError:
        return "it closed the connection on a TLS greeting; it may not speak TLS: check port and security_protocol"


def _context(options: dict[str, object]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_cafile"))  # type: ignore[arg-type]
    context.check_hostname = bool(options.get("ssl_check_hostname", True))
    if options.get("ssl_certfile"):
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), options.get("ssl_password"))  # type: ignore[arg-type]
    return context


def _answer(stream: socket.socket) -> str:
    """Ask what every broker answers before it asks who we are."""
    stream.settimeout(_PATIENCE_S)
    stream.sendall(_REQUEST)
    try:
        answer = stream.recv(8)
    except ConnectionResetError:
        answer = b""
    if answer.startswith(_TLS_ALERT) or not answer:
        return "it closed the connection; it may expect TLS: set security_protocol to SSL or SASL_SSL, and ssl_cafile"
    if len(answer) < 8 or answer[4:8] != _REQUEST[8:12]:
        return "what listens there is no Kafka broker; check the port"
    return (
        "a broker answers, and refuses what follows; check security_protocol (does it ask for a password: SASL_SSL or "
        "SASL_PLAINTEXT?), sasl_mechanism, user and password, and whether the addresses it advertises can be reached"
    )


T = TypeVar("T")


def connect(kind: Callable[..., T], connection: Connection, **configs: Any) -> T:
    """Return a client of the class `kind` (`configs` are its own settings).

    Raises UnreachableError where no broker answers within `bootstrap_timeout_ms`, NotAuthorisedError where they refuse
    user or password, ConfigurationError for settings that cannot work.
    """
    check_client_release()
    made: list[PatchedKafkaClient] = []

    def network(**settings: Any) -> PatchedKafkaClient:
        made.append(PatchedKafkaClient(**settings))
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
    if found := permanent_error(error, doing):
        return found
    if isinstance(error, errors.KafkaError):
        return UnreachableError(f"no broker at {connection.bootstrap}: {diagnose(connection)}")
    return ConfigurationError(f"cannot connect to {connection.bootstrap}: {error}")


def consumer(connection: Connection, fetch_bytes: int, **configs: Any) -> KafkaConsumer:
    """Return a connected consumer that commits nothing and resets nothing by itself; errors as `connect` has them."""
    made = connect(
        KafkaConsumer,
        connection,
        isolation_level="read_committed",  # and offsets of open transactions are waited for (require_stable)
        enable_auto_commit=False,
        auto_offset_reset="none",  # a position that is gone is our decision
        allow_auto_create_topics=False,
        fetch_max_bytes=fetch_bytes,
        max_partition_fetch_bytes=fetch_bytes,
        metrics_enabled=False,
        **configs,
    )
    return read_any_header(made)


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
        raise (permanent_error(error, doing) or transient_error(error, doing)) from error
    finally:
        client.close()
