"""Faults of the library that are cured from outside: the cures, and the release that they belong to.

1. A transaction's request is lost, and a service stops for good (3.0.12, `producer/sender.py`,
   `Sender._maybe_send_pending_request`). The request that a transaction waits for is taken from the queue;
   then the coordinator's connection is awaited. `KafkaNetClient.await_ready` raises if it is down, the
   handler's `except Exception` looks the coordinator up again and leaves the loop, and only a request whose
   `target_node` is None is put back. It is not None by then: the request is lost, and
   `commit_transaction()`, which has no timeout, waits indefinitely, also after the broker is back.
   Cure (`PatchedKafkaClient`): an `await_ready` that answers False, as its callers expect, instead of
   raising. That branch sets `target_node` to None, and the request is put back and sent to whichever broker
   is the coordinator then.
2. A connection that cannot be made leaves its socket open. The library forgets the socket of a connect that
   fails (`net/inet.py`, `KafkaNetSocket.connect`) and of a TLS handshake that fails (`net/manager.py`,
   `_build_transport`): it stays open until the garbage collector runs, one for each attempt while a broker
   is away.
   Cure (`ClosingManager`): the library's registry of socket classes, meant for proxies, accepts one that
   closes.
3. A broker that is frozen while a TLS connection is made stops its client for good: a handshake has no time
   limit (`net/transport.py`, `KafkaSSLTransport.handshake`), so the client's constructor never returns.
   Cure (`ClosingManager`): a transport whose handshake ends with the time for making a connection.
4. One byte in a header name that is not UTF-8 stops a partition for good: the library decodes names
   strictly, so the whole batch fails with `CorruptRecordError` at every attempt. Brokers do not look at
   names, so anybody who may write to a topic could stop it.
   Cure (`read_any_header`): the library's parser is tried first; only if it fails on a name does ours
   read the record, with such bytes escaped (backslash, x, two digits). Source: Kafka protocol, "Record";
   kafka-python 3.0.12, record/default_records.py and consumer/fetcher.py.
5. At the level debug the library logs passwords: all settings of an admin client (`admin/client.py`), and
   requests and bytes of the authentication (`net/connection.py`, `protocol/parser.py`).
   Cure (`hide_secrets`): filters on these three loggers drop such lines, whoever handles them.

6. After an exception from a batch (a wrong checksum) the library asks its ended generator for more, without an
   end: `poll` never returns (3.0.12, consumer/fetcher.py, `fetched_records`).
   Cure (`_PartitionRecords.take`): the partition is fetched again.

Further faults, batches that unpack to any size or not at all, are cured in `unpacking`.

Another minor release than the tested one gets a warning, another major one is refused, since the cures
depend on what is inside. What needs private attributes of the library at run time is in `internals`.
"""

import logging
import ssl
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import kafka
from kafka import KafkaConsumer, errors
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.util import decode_varint

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.unpacking import BoundedBatch

TESTED = "3.0.12"

_DIRECT = "direct://"
_AUTHENTICATION = ("SaslAuthenticate", "SaslBytes")
_LOG = logging.getLogger(__name__)
_warned_of: set[str] = set()


def check_client_release(release: str = kafka.__version__) -> None:
    """Warn once about a release that the cures were not tested with.

    ConfigurationError for another major release.
    >>> check_client_release("3.0.12")
    >>> check_client_release("4.0.0")
    Traceback (most recent call last):
    dedup_service.core.errors.ConfigurationError: kafka-python 4.0.0 is installed, ...
    """
    if release.partition(".")[0] != TESTED.partition(".")[0]:
        raise ConfigurationError(
            f"kafka-python {release} is installed, and the cures of the client's faults were made for {TESTED}: "
            f"pip install 'kafka-python=={TESTED}'"
        )
    if release != TESTED and release not in _warned_of:
        _warned_of.add(release)
        _LOG.warning("kafka-python %s is installed; the cures of its faults were tested with %s", release, TESTED)


class PatchedKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """The network side of a client; its `await_ready` does not raise if a broker is merely unavailable."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=ClosingManager(net, **configs))

    def await_ready(self, node_id: Any, timeout_ms: float = 30_000) -> bool:
        """Whether requests can be sent to the broker now.

        False if it is unreachable or no longer known.
        """
        try:
            return bool(super().await_ready(node_id, timeout_ms=timeout_ms))
        except (errors.KafkaConnectionError, errors.NodeNotReadyError, errors.UnknownBrokerIdError):
            return False


class _ClosingSocket(KafkaNetSocket):  # type: ignore[misc]
    """A plain connection that closes its socket if it fails; registered like a proxy's scheme."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class ClosingManager(KafkaConnectionManager):  # type: ignore[misc]
    """The library's connection manager.

    Each connection it begins ends connected or with its socket closed.
    """

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"] or _DIRECT,
            timeout_at=timeout_at,
        )
        try:
            transport = self._transport(node, sock, timeout_at)
        except BaseException:
            sock.close()
            raise
        try:
            await transport.handshake()
        except BaseException as error:
            transport.close()
            if isinstance(error, Exception):
                raise errors.KafkaConnectionError(f"Handshake failed: {error}") from error
            raise
        return transport

    def _transport(self, node: Any, sock: Any, timeout_at: float | None) -> Any:
        if not self.ssl_enabled:
            return KafkaTCPTransport(self._net, sock, host=node.host)
        settings = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
        transport = _TimedTls(self._net, sock, host=node.host, **settings)
        transport.timeout_at = timeout_at or time.monotonic() + self.config["request_timeout_ms"] / 1000
        return transport


class _TimedTls(KafkaSSLTransport):  # type: ignore[misc]
    """A TLS connection whose handshake ends in time; timeout_at: on the monotonic clock, in seconds."""

    timeout_at: float

    async def handshake(self) -> None:
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=self.timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=self.timeout_at)
            else:
                return


def limit_logging() -> None:
    """Drop the library's lines that may hold passwords, and all, unless a level is set: ours say what waits."""
    if (library := logging.getLogger("kafka")).level == logging.NOTSET:
        library.setLevel(logging.CRITICAL)
    for name in ("kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser"):
        logging.getLogger(name).addFilter(_shows_no_secret)


def _shows_no_secret(record: logging.LogRecord) -> bool:
    """Whether the line has neither settings nor bytes on the wire nor a message of the authentication."""
    if "configuration: %s" in str(record.msg) or "%r" in str(record.msg):
        return False
    arguments = record.args if isinstance(record.args, tuple) else ()
    return not any(type(argument).__name__.startswith(_AUTHENTICATION) for argument in arguments)


def read_any_header(consumer: KafkaConsumer) -> KafkaConsumer:
    """Replace the record parser of the consumer, so that it reads header names of any bytes; return it."""
    consumer._fetcher.PartitionRecords = _PartitionRecords  # noqa: SLF001 - the fetcher has no setting for it
    return consumer


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def take(self, n: int | None = None) -> list[Any]:
        try:
            return super().take(n)  # type: ignore[no-any-return]
        except Exception:
            self.drain()
            raise

    def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Iterator[Any]:
        return super()._unpack_records(tp, _Batches(records), *deserializers)  # type: ignore[no-any-return]


class _Batches:
    """The library's record batches, each with our parser as a fallback."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def next_batch(self) -> Any:
        batch = self._batches.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch.__class__ = _Batch
        return batch


class _Batch(BoundedBatch):
    __slots__ = ()  # as the library's class has it, or `__class__` could not be assigned
    if TYPE_CHECKING:
        _pos: int

    def _read_msg(self, *arguments: Any) -> Any:
        try:
            return super()._read_msg(*arguments)
        except UnicodeDecodeError:
            return self._read_with_escapes()

    def _read_with_escapes(self) -> DefaultRecord:
        buffer: Any = self._buffer
        length, start = decode_varint(buffer, self._pos)
        _, at = decode_varint(buffer, start)  # attributes, unused
        elapsed, at = decode_varint(buffer, at)
        delta, at = decode_varint(buffer, at)
        key, at = _bytes(buffer, at)
        value, at = _bytes(buffer, at)
        count, at = decode_varint(buffer, at)
        headers = []
        for _ in range(count):
            name, at = _bytes(buffer, at)
            content, at = _bytes(buffer, at)
            headers.append(((name or b"").decode("utf-8", "backslashreplace"), content))
        if at - start != length:
            raise CorruptRecordError(f"a record of {length} bytes ends after {at - start}")
        self._pos = at  # type: ignore[misc]
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        timestamp = self.max_timestamp if appended else self.first_timestamp + elapsed
        return DefaultRecord(length, self.base_offset + delta, timestamp, self.timestamp_type, key, value, headers)


def _bytes(buffer: Any, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint(buffer, at)
    return (None, at) if size < 0 else (bytes(buffer[at : at + size]), at + size)
