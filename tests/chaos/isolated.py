"""Run a command in a network namespace of its own, where only some ports of this machine can be reached.

    unshare --map-root-user --net python isolated.py SOCKET PARENT_PID PORT,… COMMAND…

It listens at these ports of the namespace's loopback address, hands the listening sockets to the `NetworkGate` behind
the Unix socket SOCKET, and becomes the command, with the same process id. A separate program, as `die_with_parent`,
through which it becomes the command: a new user namespace clears the signal that a child gets when its parent ends.
"""

import array
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_SIOCSIFFLAGS = 0x8914
_UP_RUNNING = 0x41
_LISTEN_QUEUE = 32
HOST = "127.0.0.1"


def _become(gate: str, parent: str, ports: Sequence[int], command: Sequence[str]) -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_RUNNING))
    listeners = [socket.create_server((HOST, port), backlog=_LISTEN_QUEUE) for port in ports]
    numbers = array.array("i", [listener.fileno() for listener in listeners])
    with socket.socket(socket.AF_UNIX) as to_gate:
        to_gate.connect(gate)
        to_gate.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        to_gate.recv(1)  # the gate serves them
    script = Path(__file__).parents[2] / "deploy" / "kafka" / "die_with_parent.py"
    os.execv(sys.executable, [sys.executable, "-I", "-S", str(script), parent, *command])


if __name__ == "__main__":
    _become(sys.argv[1], sys.argv[2], [int(port) for port in sys.argv[3].split(",")], sys.argv[4:])
