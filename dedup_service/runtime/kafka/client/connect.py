"""Make clients of the library: connected, or an error that says what to check, with nothing left behind.

Every consumer, producer and admin client of the project is made by `connect`, so that all of them have the
cures of `patches`: a `PatchedKafkaClient` as their network side, sockets that are closed, and readable
headers (`consumer`).

Failed connections: the library's constructors connect, and if that fails they raise and leave behind what
they had begun, a network thread and sockets. So the network side is made here (`kafka_client` is the
library's own setting for that) and closed here.
Diagnosis: the library reports a wrong password, a missing authority and a plaintext client on a TLS port
alike, as `Unable to bootstrap`. `_diagnose` looks at each address with a plain socket and tells them apart:
does the name resolve, does something listen, is a TLS handshake possible, does it answer as a broker does.
Nothing secret is sent: the only request is ApiVersions, the first one of every client.
Memory of a consumer: a broker sends at most `fetch_bytes` at a time (more only if a single batch is
larger), and one answer a broker may wait while another is read: `2 x fetch_bytes x brokers` as compressed on
the wire, one unpacked batch, and the records of a poll (`unpacking` limits both).

The library's types that appear in our signatures are re-exported here, so that no other folder imports the
library.
"""

import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from kafka import KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.patches import (
    PatchedKafkaClient,
    check_client_release,
    limit_logging,
    read_any_header,
)
from dedup_service.runtime.kafka.client.retry import permanent_error
from dedup_service.runtime.kafka.client.unpacking import limit_poll

__all__ = [
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "TopicPartition",
    "connect",
    "consumer",
]

T = TypeVar("T")

_LOOK_TIMEOUT_S = 3.0
# ApiVersions, version 0, correlation id 1, client id "look": the same bytes since Kafka 0.10.
_BODY = struct.pack(">hhih", 18, 0, 1, 4) + b"look"
_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
_TLS = ("SSL", "SASL_SSL")
_TLS_ALERT = b"\x15\x03"


def connect(kind: Callable[..., T], connection: Connection, **configs: Any) -> T:
    """Return a connected client of the library's class `kind`; `configs` are the settings of that class.

    Raises UnreachableError if no broker answers within `bootstrap_timeout_ms`, NotAuthorisedError if
    the brokers refuse user or password, ConfigurationError for settings that cannot work.
    """
    check_client_release()
    limit_logging()
    networks: list[PatchedKafkaClient] = []

    def network(**settings: Any) -> PatchedKafkaClient:
        networks.append(PatchedKafkaClient(**settings))
        return networks[-1]

    try:
        return kind(**connection.configs(kafka_client=network, **configs))
    except (errors.KafkaError, OSError, ValueError) as error:
        for unused in networks:
            internals.close_network(unused)
        raise _explained(error, connection) from error


def _explained(error: Exception, connection: Connection) -> Exception:
    action = f"to connect to {connection.bootstrap}"
    if found := permanent_error(error, action):
        return found
    if isinstance(error, errors.KafkaError):
        options = connection.configs()
        if options.get("security_protocol") in _TLS:
            try:
                _context(options)
            except OSError as unusable:
                text = f"the certificates in ssl_cafile or ssl_certfile cannot be loaded ({unusable}); check the files"
                return ConfigurationError(text)
        return UnreachableError(f"no broker at {connection.bootstrap}: {_diagnose(connection)}")
    return ConfigurationError(connection.redacted(f"cannot connect to {connection.bootstrap}: {error}"))


def consumer(
    connection: Connection,
    fetch_bytes: int,
    *,
    partition_fetch_bytes: int | None = None,
    committed: bool = True,
    **configs: Any,
) -> KafkaConsumer:
    """Return a connected consumer of committed records; raises as `connect`.

    It commits nothing and resets no position by itself. fetch_bytes: see the module for what it bounds.
    partition_fetch_bytes: the same of one partition; a batch is fetched whole, however large it is. committed: False
    for one that is only asked where partitions end, open transactions included.
    """
    reader = connect(
        KafkaConsumer,
        connection,
        # "read_committed" also waits for committed offsets in open transactions (require_stable)
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
        auto_offset_reset="none",  # what to do about a position that no longer exists is our decision
        allow_auto_create_topics=False,
        fetch_max_bytes=fetch_bytes,
        max_partition_fetch_bytes=partition_fetch_bytes or fetch_bytes,
        metrics_enabled=False,
        **configs,
    )
    return limit_poll(read_any_header(reader))


def _diagnose(connection: Connection) -> str:
    """Return what is wrong at each address and what to check, as one line for people."""
    options = connection.configs()
    return "; ".join(f"{server}: {_look(server, options)}" for server in connection.servers)


def _look(server: str, options: dict[str, object]) -> str:
    host, _, port = server.rpartition(":")
    address = (host.strip("[]"), int(port)) if host else (server, 9092)
    try:
        with socket.create_connection(address, _LOOK_TIMEOUT_S) as plain:
            if options.get("security_protocol") in _TLS:
                return _look_by_tls(plain, address[0], options)
            return _answer(plain)
    except (socket.gaierror, UnicodeError):  # an empty label, as in a..b, one that is too long, bytes that are no text
        return "the name does not resolve; check the address"
    except ConnectionRefusedError:
        return "nothing listens there; check address and port, or start the broker"
    except TimeoutError:
        return "no answer in time; check address and firewall, or whether the broker hangs"
    except OSError as error:
        return f"{error}; check the address"


def _look_by_tls(plain: socket.socket, host: str, options: dict[str, object]) -> str:
    try:
        with _context(options).wrap_socket(plain, server_hostname=host) as secure:
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
    """Send the request that every broker answers before it authenticates the client."""
    stream.settimeout(_LOOK_TIMEOUT_S)
    stream.sendall(_REQUEST)
    try:
        answer = stream.recv(8)
    except ConnectionResetError:
        answer = b""
    if answer.startswith(_TLS_ALERT) or not answer:
        return "it closed the connection; it may expect TLS: set security_protocol to SSL or SASL_SSL, and ssl_cafile"
    if len(answer) < 8 or answer[4:8] != _REQUEST[8:12]:
        return "what listens there is not a Kafka broker; check the port"
    return (
        "a broker answers, and refuses what follows; check security_protocol (does it ask for a password: SASL_SSL or "
        "SASL_PLAINTEXT?), sasl_mechanism, user and password, and whether the addresses it advertises can be reached"
    )
