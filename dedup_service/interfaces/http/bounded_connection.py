"""One connection of the HTTP server, bounded in time and number, whoever is at its other end.

uvicorn bounds the head of a request (16 KiB) and the silence between two requests, but not how long a request
takes to arrive, how long an answer takes to leave, or how many connections are open. So a client that sends
a byte now and then, or does not read, would keep a connection and its file indefinitely, and many of them would
shut out the probes of an orchestrator, which then restarts a healthy service.

How: one timer a connection, and one connection closed for each that is too many.

- A request arrives whole, its body included, within `receive_s` of the connection or of the last answer.
- A client that stops reading an answer is cut off after `send_s`.
- If more than `connections` are open, the oldest is cut off that has no request in progress; if there is none,
  the oldest whose answer is not a stream. Streams are limited by their hub, to fewer.

Invariant: a timer runs at all times, except while the application works on a request that has arrived.
Between requests, uvicorn's own timer of 5 s ends the connection.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

STREAM = "twinsieve.stream"
"""Key of the state of an ASGI scope; an application that sets it answers with a stream."""

_ARRIVING = (h11.IDLE, h11.SEND_BODY)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a server's connections. receive_s, send_s: see the module. connections: open at once.

    600 connections are 500 streams and 100 others. They leave 400 files to the service where a process may
    open 1,024, the usual limit of a login shell and of systemd.
    """

    receive_s: float = 20.0
    send_s: float = 30.0
    connections: int = 600


class BoundedConnection(H11Protocol):
    """uvicorn's connection with `limits`; made by `bounded_by`. is_cut_off: aborted, and about to leave the set."""

    limits = ConnectionLimits()
    _timer: asyncio.TimerHandle | None = None
    is_cut_off = False
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer; make room if there are too many connections."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._start(self.limits.receive_s)
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timers with the connection."""
        self._stop()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop the timer once the request has arrived."""
        super().data_received(data)
        self._check()

    def on_response_complete(self) -> None:
        """Start the time for the rest of the answer and the next request."""
        self._start(self.limits.receive_s)
        super().on_response_complete()
        self._check()

    def pause_writing(self) -> None:
        """Start the time within which the client has to read."""
        super().pause_writing()
        self._start(self.limits.send_s)

    def resume_writing(self) -> None:
        """Stop the timer, unless a request is still arriving."""
        super().resume_writing()
        if self._is_in_progress():
            self._check()

    def cut_off(self) -> None:
        """Abort the connection; what was not sent yet is discarded."""
        self._stop()
        self.is_cut_off = True
        self.transport.abort()

    def _make_room(self) -> None:
        """Cut off one connection if there are too many; those cut off are still in the set for a moment."""
        connections = [one for one in self.connections if isinstance(one, BoundedConnection) and not one.is_cut_off]
        if len(connections) > self.limits.connections:
            min((one for one in connections if one is not self), key=BoundedConnection._rank, default=self).cut_off()

    def _check(self) -> None:
        """Stop the timer if the application has the whole request and has not answered yet."""
        if self._is_in_progress() and self.conn.their_state not in _ARRIVING and not self.flow.write_paused:
            self._stop()

    def _is_in_progress(self) -> bool:
        cycle: Any = self.cycle  # None before the first request, which uvicorn's annotation leaves out
        return cycle is not None and not cycle.response_complete

    def _rank(self) -> tuple[int, float]:
        """Return the place in the order in which connections are cut off, lowest first."""
        if not self._is_in_progress():
            return 0, self._since
        return (2 if self.cycle.scope["state"].get(STREAM) else 1), self._since

    def _start(self, seconds: float) -> None:
        self._stop()
        self._timer = self.loop.call_later(seconds, self.cut_off)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def bounded_by(limits: ConnectionLimits) -> type[BoundedConnection]:
    """Return the class of connections with these limits; uvicorn creates them itself."""
    return type("BoundedConnection", (BoundedConnection,), {"limits": limits})
