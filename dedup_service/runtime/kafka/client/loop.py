"""The library's event loop and connections, without work that nobody needs.

To send a request and receive its answer takes the library 110 to 133 µs of processor time, and this 65 to 74, of which
the kernel has most (`python -m benchmarks.client_loop`; kafka-python 3.0.12, `net/selector.py`, `net/transport.py`):

1. Whether a socket is registered is asked with `get_key`, which raises a KeyError with the socket's `repr` in it,
   twice, whenever it is not: at every wait. `Loop` asks a dictionary.
2. Each write waits until the socket can be written to, which it nearly always can. `EagerTransport` writes first, and
   waits if the socket takes no more.
3. Answers are received 4 KiB at a time, 64 calls for 256 KiB, and each ends with a call that raises BlockingIOError.
   `EagerTransport` receives 64 KiB, and less means that there is no more.
4. Whatever another thread asks of the loop, a byte is sent to wake it, also while one is under way. `Loop` sends one
   until the loop has seen it.

What is sent and received, and in which order, is what the library sends and receives.
"""

import selectors
import socket
import ssl
import time
from contextlib import suppress
from typing import Any

from kafka import errors
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

_RECEIVE_BYTES = 1 << 16
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Selector(selectors.DefaultSelector):
    """The system's selector; a file that is not registered raises a KeyError that says nothing, and costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._keep(super().register(fileobj, events, data))

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._keep(super().modify(fileobj, events, data))

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._keys.pop(key.fd, None)
        return key

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._keys[number] if number >= 0 else super().get_key(fileobj)

    def close(self) -> None:
        super().close()
        self._keys.clear()

    def _keep(self, key: selectors.SelectorKey) -> selectors.SelectorKey:
        self._keys[key.fd] = key
        return key


class Loop(NetworkSelector):  # type: ignore[misc]
    """The library's event loop, with a quick selector and no more bytes to wake it than it needs."""

    _is_woken = False
    """Whether a byte is under way. Set when a task is ready, unset before the loop counts the ready ones."""

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs | {"selector": _Selector})

    def wakeup(self) -> None:
        """Make a loop that waits go on; from any thread."""
        if not self._is_woken:
            self._is_woken = True
            super().wakeup()

    def _process_events(self, event_list: Any) -> None:
        super()._process_events(event_list)
        # After the byte was received, not before: another one could be received with it, and the next ask none.
        self._is_woken = False

    def _rebuild_wakeup_socketpair(self) -> None:
        super()._rebuild_wakeup_socketpair()
        self._is_woken = False  # the byte may have gone with the sockets
        self.wakeup()


class EagerTransport(KafkaTCPTransport):  # type: ignore[misc]
    """A connection that writes before it waits, and receives in large pieces. A base of one with TLS, too."""

    async def _write_to_sock(self) -> None:
        try:
            while self._write_buffer:
                sent, error = self._sock_send()
                if error:
                    self.abort(error=error)
                    return
                self.last_write = time.monotonic()
                if self._protocol and self._protocol._sensors:  # noqa: SLF001 - as the library counts
                    self._protocol._sensors.bytes_sent.record(sent)  # noqa: SLF001
                if self._write_buffer:
                    await self._net.wait_write(self._sock)
        finally:
            self._writing = False
        if self._closed:
            self._close()
        elif not self._write:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        parts: list[bytes] = []
        # TLS has at most 16 KiB in a piece, and what it has unpacked no selector sees.
        may_have_more = isinstance(self._sock, ssl.SSLSocket)
        try:
            while True:
                data = self._sock.recv(_RECEIVE_BYTES)
                if not data:
                    return b"".join(parts), errors.KafkaConnectionError("socket disconnected")
                parts.append(data)
                if len(data) < _RECEIVE_BYTES and not may_have_more:
                    break
        except _NOT_NOW:
            pass
        except Exception as error:
            return b"".join(parts), errors.KafkaConnectionError(error)
        return b"".join(parts), None
