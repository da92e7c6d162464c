"""The thread that decides never waits for the disk: other threads finish commits, and nothing else waits for it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import restore
from dedup_service.runtime.store import stored_entries
from tests.runtime.embedded.prepared import SPACE, SPACE_ID, prepared
from tests.runtime.kafka.state.list_log import ListLog, first, page

_PAGES = 200


class SlowDisk:
    """A disk that does not take commits before half of the pages are decided."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.finished = list[int](), list[int]()
        self._goes_on, self._is_finished = threading.Event(), threading.Event()
        self._finish = stored_entries._finish
        monkeypatch.setattr(stored_entries, "_finish", self._slowly)

    def _slowly(self, *commit: Any) -> None:
        self.asked.append(threading.get_ident())
        assert self._goes_on.wait(60)
        self._finish(*commit)
        self.finished.append(threading.get_ident())
        self._is_finished.set()

    def assert_nobody_waits(self, decide: Callable[[int], None]) -> None:
        """Check that decisions go on while a commit waits, and that this thread finishes none."""
        for number in range(_PAGES // 2):
            decide(number)
        assert len(self.asked) == 1
        assert not self.finished
        self._goes_on.set()
        assert self._is_finished.wait(60)  # pages are decided faster than a disk answers
        for number in range(_PAGES // 2, _PAGES):
            decide(number)
        assert len(self.asked) > 1
        assert threading.get_ident() not in self.asked


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    """A slow disk for commits."""
    return SlowDisk(monkeypatch)


def test_an_embedded_state_waits_for_the_journal_alone(tmp_path: Path, disk: SlowDisk) -> None:
    """Commits of the kept pages go on beside the decisions."""
    state = State(tmp_path, SPACE_ID, SPACE, None, StateSettings(IndexLayout(window=8), snapshot_every=30))

    def decide(number: int) -> None:
        url = f"https://a.example/{number if number % 4 == 0 else number % 3}"
        state.decide([(prepared(url, number), None)])

    disk.assert_nobody_waits(decide)
    state.close()


def test_a_service_does_not_wait_while_it_decides(tmp_path: Path, disk: SlowDisk) -> None:
    """Neither for a snapshot nor for what goes on between two of them."""
    with LocalState.open(tmp_path, snapshot_every=30) as local:
        restored = restore(local, ListLog([first(rule=None)]), {})
        assert restored is not None
        replica = restored.replica

        def decide(number: int) -> None:
            record = page(number, f"u{number if number % 4 == 0 else number % 3}", number)
            replica.apply_many([(replica.sequence + 2, read) for read in decode(encode(record))])
            local.pages.note_applied(1)
            local.pages.step()
            if local.pages.due:
                local.pages.take_snapshot(replica, restored.pending_outcomes, restored.tail)

        disk.assert_nobody_waits(decide)
