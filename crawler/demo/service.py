"""`twinsieve serve` beside the demo's crawl, as somebody would start it in a second terminal, and what it answers."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from dedup_service.core.errors import StateError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer

__all__ = ["DemoService", "verdicts_of"]

STOPS_WITHIN_S = 20
PATIENCE_S = 120.0
"""Without a single verdict; a service needs some seconds to start, and its first transactions one or two."""


class DemoService:
    """A running service. log: the file that it writes its lines to."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    @contextmanager
    def running(cls, folder: Path, prefix: str, broker: Mapping[str, Any]) -> Iterator["DemoService"]:
        """Start it with the options of `broker` (faces.cli.broker_options); it is stopped at the end."""
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", "serve", "--bootstrap", broker["bootstrap"]]
        command += ["--prefix", prefix, "--state", str(folder / "state")]
        if broker["client_config"]:
            command += ["--client-config", broker["client_config"]]
        for option in broker["client_options"]:
            command += ["--client-option", option]
        path = folder / "serve.log"
        with path.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - our own command
            try:
                yield cls(process, path)
            finally:
                _stop(process)

    def check(self) -> None:
        """StateError where it has ended; the message shows its last lines."""
        if self._process.poll() is not None:
            last = self._log.read_text("utf-8", "replace").splitlines()[-5:]
            raise StateError(f"the service ended with code {self._process.returncode}: {' / '.join(last)}")


def verdicts_of(connection: Connection, topic: str, count: int, service: DemoService) -> list[dict[str, Any]]:
    """Return `count` verdicts from `topic`, when they are there.

    StateError where the service ends before, or says nothing new for two minutes.
    """
    verdicts: list[dict[str, Any]] = []
    reader = GroupConsumer(connection, topic, f"table-{uuid.uuid4().hex}", "demo", on_revoked=lambda _: None)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while len(verdicts) < count:
            records = reader.poll(0.5, 500)
            verdicts += [msgspec.json.decode(record.value) for record in records]
            if records:
                deadline = time.monotonic() + PATIENCE_S
            elif time.monotonic() > deadline:
                raise StateError(f"{len(verdicts)} of {count} pages have a verdict, and no more came for two minutes")
            service.check()
    finally:
        reader.close(leave=True)
    return verdicts


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
