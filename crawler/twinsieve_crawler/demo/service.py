"""Runs `twinsieve serve` beside the demo's crawl, as in a second terminal, and reads its verdicts."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from dedup_service.core.errors import StateError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer

STOP_TIMEOUT_S = 20
VERDICT_TIMEOUT_S = 120.0
"""Time without a new verdict; a service needs some seconds to start, and a few for its first transactions."""


class DemoService:
    """A running service. log: the file with its output."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    @contextmanager
    def running(cls, folder: Path, prefix: str, bootstrap: str) -> Iterator["DemoService"]:
        """Run the service during the block."""
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", "serve", "--bootstrap", bootstrap]
        command += ["--prefix", prefix, "--state", str(folder / "state")]
        path = folder / "serve.log"
        with path.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - our own command
            try:
                yield cls(process, path)
            finally:
                _stop(process)

    def check(self) -> None:
        """Raise StateError if the service has ended; the message shows its last lines."""
        if self._process.poll() is not None:
            last = self._log.read_text("utf-8", "replace").splitlines()[-5:]
            raise StateError(f"the demo's service ended with exit code {self._process.returncode}: {' / '.join(last)}")


def verdicts_of(connection: Connection, topic: str, count: int, service: DemoService) -> list[dict[str, Any]]:
    """Wait for `count` verdicts from `topic` and return them.

    StateError if the service ends before, or writes no new verdict for two minutes.
    """
    verdicts: list[dict[str, Any]] = []
    reader = GroupConsumer(connection, topic, f"table-{uuid.uuid4().hex}", "demo", on_revoked=lambda _: None)
    try:
        deadline = time.monotonic() + VERDICT_TIMEOUT_S
        while len(verdicts) < count:
            records = reader.poll(0.5, 500)
            verdicts += [msgspec.json.decode(record.value) for record in records]
            if records:
                deadline = time.monotonic() + VERDICT_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise StateError(
                    f"only {len(verdicts)} of {count} pages have a verdict, and none was added for two minutes"
                )
            service.check()
    finally:
        reader.close(leave=True)
    return verdicts


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
