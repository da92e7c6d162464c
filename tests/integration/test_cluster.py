"""The broker that tests start: it survives fault injection, and never outlives the tests."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.kafka.readiness import wait_until
from tests.hangs import HANG_S

pytestmark = [pytest.mark.long, pytest.mark.broker]
ROOT = Path(__file__).parents[2]


def answers(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_no_broker_outlives_a_killed_parent(tmp_path):
    """A SIGKILL of the process that started it ends the broker too, and the next start removes its data."""
    with launcher(tmp_path) as parent:
        bootstrap = address_of(parent)
        assert answers(bootstrap)
        parent.kill()
    assert wait_until(lambda: not answers(bootstrap), timeout_s=HANG_S)
    assert list(tmp_path.iterdir())
    with launcher(tmp_path, "--", "true") as parent:
        parent.wait()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_command_end_its_broker(tmp_path, number):
    """Ctrl-C and SIGTERM stop the broker and remove its data."""
    with launcher(tmp_path) as parent:
        bootstrap = address_of(parent)
        parent.send_signal(number)
    assert not answers(bootstrap)
    assert not list(tmp_path.iterdir())


def test_the_command_runs_another_with_the_address(tmp_path):
    """`-- COMMAND` gets TWINSIEVE_BOOTSTRAP, and its exit code is returned."""
    with launcher(tmp_path, "--", "sh", "-c", "echo address=$TWINSIEVE_BOOTSTRAP; exit 7") as parent:
        assert address_of(parent).startswith("127.0.0.1:")
    assert parent.returncode == 7


def launcher(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name != "TWINSIEVE_BOOTSTRAP"}  # of the tests' broker
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.kafka", *arguments],
        cwd=ROOT,
        env={**env, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def address_of(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().rpartition("=")[2].strip()
