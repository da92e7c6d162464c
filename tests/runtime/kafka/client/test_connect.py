"""Clients that cannot be made: every attempt ends, leaves nothing behind, and shows no secret."""

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.protocol.sasl import SaslAuthenticateRequest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.patches import limit_logging
from tests.hangs import HANG_S

SECURED = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "u",
    "sasl_plain_password": "hidden-password",
    "bootstrap_timeout_ms": "1000",
    "request_timeout_ms": "1000",
}


@pytest.fixture
def frozen() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def ends(action: threading.Thread) -> bool:
    """Whether the thread ends; the client alone would wait for ever."""
    action.start()
    action.join(HANG_S)
    return not action.is_alive()


@pytest.mark.parametrize("kind", [KafkaAdminClient, KafkaConsumer, KafkaProducer])
def test_a_broker_that_is_frozen_during_a_tls_handshake_does_not_hang_its_client(frozen: str, kind: type) -> None:
    """The constructor ends with the time for connecting, and says that nobody answers."""
    raised: list[UnreachableError] = []

    def make() -> None:
        try:
            connect(kind, Connection(frozen, SECURED))
        except UnreachableError as error:
            raised.append(error)

    assert ends(threading.Thread(target=make, daemon=True))
    assert "no answer in time" in str(raised[0])


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 64}.example", "a\udcff"])
def test_a_host_that_cannot_be_a_name_does_not_resolve(host: str) -> None:
    """An empty part, one that is too long, and bytes that are no text are told as any unknown name is."""
    with pytest.raises(UnreachableError, match="the name does not resolve"):
        connect(KafkaConsumer, Connection(f"{host}:9092", {"bootstrap_timeout_ms": "100"}))


def test_failed_connections_leave_no_thread_and_no_socket(frozen: str) -> None:
    """Ten attempts at a frozen broker, with and without TLS."""
    plain = {"bootstrap_timeout_ms": "300", "request_timeout_ms": "300"}
    quick = {**SECURED, **plain}
    before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for options in [plain, quick] * 2:
        with pytest.raises(UnreachableError):
            connect(KafkaConsumer, Connection(frozen, options), fetch_max_wait_ms=100)
    assert (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))) <= before


def test_no_password_is_logged_at_debug(frozen: str, caplog: pytest.LogCaptureFixture) -> None:
    """The library logs the settings of an admin client, and the messages and bytes of an authentication."""
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="kafka"):
        with contextlib.suppress(UnreachableError):
            connect(KafkaAdminClient, Connection(frozen, SECURED))
        limit_logging()
        message = SaslAuthenticateRequest(b"\0u\0hidden-password")
        logging.getLogger("kafka.net.connection").debug("%s Request %d: %s", "conn", 1, message)
        logging.getLogger("kafka.protocol.parser").debug("%s Send: %r", "conn", b"\0u\0hidden-password")
        logging.getLogger("kafka.net.connection").debug("%s Request %d: %s", "conn", 2, "Metadata")
    assert "Metadata" in caplog.text
    assert "hidden-password" not in caplog.text


def test_lines_of_the_library_are_left_out_unless_a_level_is_set(frozen: str, caplog: pytest.LogCaptureFixture) -> None:
    """While a broker is away, they are dozens; who sets a level for them has them."""
    library = logging.getLogger("kafka")
    library.setLevel(logging.NOTSET)
    with contextlib.suppress(UnreachableError):
        connect(KafkaConsumer, Connection(frozen, {"bootstrap_timeout_ms": "100"}))
    library.error("no connection")
    with caplog.at_level(logging.WARNING, logger="kafka"):
        limit_logging()
        library.error("seen")
    assert [record.message for record in caplog.records if record.name.startswith("kafka")] == ["seen"]
