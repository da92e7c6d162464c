"""The event loop and connections of the client: the same bytes in the same order, with less work."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.net.transport import KafkaTCPTransport

from dedup_service.runtime.kafka.client.loop import EagerTransport, Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that nobody drives."""
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Our end of a connection, which never waits, and the other one."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(30)
    yield ours, theirs
    ours.close()
    theirs.close()


class Answers:
    """What a connection hands its bytes to."""

    def __init__(self) -> None:
        self._sensors = None
        self.pieces: list[bytes] = []
        self.lost: list[object] = []

    def data_received(self, data: bytes) -> None:
        """Take a piece."""
        self.pieces.append(data)

    def connection_lost(self, error: object) -> None:
        """Take the reason."""
        self.lost.append(error)


def connected(loop: Loop, ours: Any) -> tuple[EagerTransport, Answers]:
    """A connection and what takes its bytes."""
    transport, answers = EagerTransport(loop, ours), Answers()
    transport.set_protocol(answers)
    return transport, answers


def test_a_socket_that_is_not_registered_is_no_text(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    """Waits and their ends ask for it, each time; a socket as text costs two system calls."""
    ours, _ = ends
    with pytest.raises(KeyError) as raised:
        loop._selector.get_key(ours)
    assert raised.value.args == (ours.fileno(),)
    loop.register_event(ours, 1, lambda: None)
    loop.register_event(ours, 2, lambda: None)
    assert loop._selector.get_key(ours).events == 3
    loop.unregister_event(ours, 1)
    assert loop._selector.get_key(ours).events == 2
    loop.unregister_event(ours, 2)
    with pytest.raises(KeyError):
        loop._selector.get_key(ours)


def test_a_closed_socket_can_be_unregistered(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    """Whether it was registered or not; its number may be that of another file by then."""
    ours, theirs = ends
    loop.register_event(ours, 1, lambda: None)
    ours.close()
    loop.unregister_event(ours, 1)
    theirs.close()
    loop.unregister_event(theirs, 1)
    one, other = socket.socketpair()
    loop.register_event(one, 1, lambda: None)
    loop.unregister_event(one, 1)
    one.close()
    other.close()


def test_bytes_are_written_before_anything_is_waited_for(
    loop: Loop, ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the socket takes them; the library waits before each write."""
    waits: list[object] = []
    wait = loop.wait_write
    monkeypatch.setattr(loop, "wait_write", lambda *arguments: (waits.append(arguments), wait(*arguments))[1])
    ours, theirs = ends
    transport, _ = connected(loop, ours)
    transport.write(b"a request")
    transport.writelines([b" and", b" another"])
    loop.poll(timeout_ms=0)
    assert theirs.recv(100) == b"a request and another"
    assert waits == []


def test_what_a_full_socket_does_not_take_is_written_later(
    loop: Loop, ends: tuple[socket.socket, socket.socket]
) -> None:
    """All of it, in order, also what was written meanwhile; a connection that is closed sends the rest first."""
    ours, theirs = ends
    transport, answers = connected(loop, ours)
    sent = [bytes([number]) * 700_000 for number in range(5)]
    for part in sent:
        transport.write(part)
    received = bytearray()
    loop.poll(timeout_ms=0)
    transport.write(b"last")
    transport.close()
    expected = b"".join(sent) + b"last"
    theirs.setblocking(False)
    while len(received) < len(expected):
        loop.poll(timeout_ms=100)
        try:
            received += theirs.recv(1 << 20)
        except BlockingIOError:
            continue
    assert received == expected
    loop.poll(timeout_ms=0)
    theirs.settimeout(30)
    assert (theirs.recv(1), answers.lost) == (b"", [None])


class Counted:
    """A socket that counts what is asked of it."""

    def __init__(self, inner: socket.socket) -> None:
        self.inner = inner
        self.receives = 0

    def recv(self, size: int) -> bytes:
        """Receive, and count it."""
        self.receives += 1
        return self.inner.recv(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("kind", [EagerTransport, KafkaTCPTransport])
def test_an_answer_is_received_in_large_pieces(
    loop: Loop, ends: tuple[socket.socket, socket.socket], kind: type[KafkaTCPTransport]
) -> None:
    """One call for a small one, four for 200 KiB; the library, for comparison, 52 and one that raises."""
    ours, theirs = ends
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    transport, answers = kind(loop, Counted(ours)), Answers()
    transport.set_protocol(answers)
    theirs.sendall(b"x" * 200_000)
    transport.resume_reading()
    for _ in range(3):
        loop.poll(timeout_ms=10)
    assert b"".join(answers.pieces) == b"x" * 200_000
    assert transport._sock.receives == (4 if kind is EagerTransport else 50)


def test_a_connection_that_the_other_side_closes_is_lost(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    """What came before is handed on."""
    ours, theirs = ends
    transport, answers = connected(loop, ours)
    transport.resume_reading()
    theirs.sendall(b"the end")
    theirs.close()
    for _ in range(5):
        loop.poll(timeout_ms=10)
    assert answers.pieces == [b"the end"]
    assert str(answers.lost[0]) == "KafkaConnectionError: socket disconnected"


def test_a_loop_is_woken_once(loop: Loop) -> None:
    """However much is asked of it before it has seen that; then it can be woken again."""
    for _ in range(2):
        for _ in range(50):
            loop.call_soon_threadsafe(lambda: None)
        assert len(loop._wakeup_r.recv(1000, socket.MSG_PEEK)) == 1
        loop.poll(timeout_ms=0)
        loop.poll(timeout_ms=0)
        with pytest.raises(BlockingIOError):
            loop._wakeup_r.recv(1000, socket.MSG_PEEK)


def test_nothing_that_is_asked_of_a_loop_waits(loop: Loop) -> None:
    """Threads that ask at any moment, while the loop waits or works, are all answered, each time at once."""
    loop.start()
    answered = []

    def ask() -> None:
        answered.extend([loop.run(lambda number=number: number) for number in range(2_000)])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answered) == 6_000
    loop.stop()


def test_a_loop_whose_sockets_were_lost_can_be_woken(loop: Loop) -> None:
    """New ones are made, and what was asked meanwhile is done."""
    done: list[int] = []
    loop._wakeup_w.close()
    loop.call_soon_threadsafe(lambda: done.append(1))
    for _ in range(3):
        loop.poll(timeout_ms=0)
    loop.call_soon_threadsafe(lambda: done.append(2))
    assert len(loop._wakeup_r.recv(1000, socket.MSG_PEEK)) >= 1
    loop.poll(timeout_ms=0)
    assert done == [1, 2]
