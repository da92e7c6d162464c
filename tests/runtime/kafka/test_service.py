"""The start of a service, with steps that cannot be built yet."""

import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka import service
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.service import Service, ServiceSettings
from dedup_service.runtime.kafka.state.mounted_bases import BaseUnusableError


class Starting(Service):
    """A service whose attempts to start end as `attempts` say, each after an hour, and then succeed."""

    def __init__(self, folder: Path, attempts: list[str], clock: SimpleNamespace) -> None:
        super().__init__(ServiceSettings(connection=Connection("nowhere:1"), state=folder))
        self.attempts, self.clock = attempts, clock

    def _build_steps(self, *_: Any) -> dict[str, Any]:
        if not self.attempts:
            return {}
        attempt = self.attempts.pop(0)
        self.clock.now += 3600.0
        if attempt == "base":
            raise BaseUnusableError("base corpus: not given")
        if attempt == "restored":
            self._report_restore(RestoreEvent(1, 1, 3600.0, done=True))
        raise UnreachableError("no broker")

    def start(self) -> dict[str, Any] | None:
        """Start, with steps that are none."""
        with ExitStack() as stack:
            return self._start_steps(None, None, stack, threading.Event())  # type: ignore[arg-type]


def test_a_long_restore_leaves_brokers_as_much_time_as_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They answered until then; an hour in which they do not ends the start."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert Starting(tmp_path, ["base", "restored", "base"], clock).start() == {}
    with pytest.raises(UnreachableError):
        Starting(tmp_path, ["base", "away"], clock).start()
