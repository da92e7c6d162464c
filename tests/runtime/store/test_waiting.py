"""The thread that decides never waits for the disk: other threads sync, write much at once, replace and delete."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.embedded.state import PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import restore
from dedup_service.runtime.store.manifest import read_manifest
from dedup_service.runtime.store.stored_entries import StoredEntries
from tests.runtime.embedded.prepared import SPACE, SPACE_ID, prepared
from tests.runtime.kafka.state.list_log import ListLog, first, page

from .disk_calls import disk_calls
from .pages import SEGMENT_ROWS

_LARGE = 1 << 20
_MOST = 20_000
"""Pages after which a test gives up; some hundred are enough."""


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new stores have segments that are full soon, so that they are compacted."""
    monkeypatch.setitem(StoredEntries.open.__func__.__kwdefaults__, "segment_rows", SEGMENT_ROWS)  # type: ignore[attr-defined]


def decide_until_all_is_written(decide: Callable[[int], None], folder: Path) -> None:
    """Decide versions of the same pages until a commit has two compacted segments.

    Every fourth page has one version.
    """
    for number in range(_MOST):
        decide(number)
        manifest = read_manifest(folder)
        compacted = [segment for segment in manifest.segments if segment.compacted]
        if len(compacted) > 1:
            return
    raise AssertionError(f"{manifest}")


def assert_others_waited(decide: Callable[[int], None], folder: Path) -> None:
    """Check that this thread did not wait for the disk while deciding, although a good deal was written."""
    with disk_calls(folder) as calls:
        decide_until_all_is_written(decide, folder)
        own, others = threading.get_ident(), calls.waiting.keys() - {threading.get_ident()}
        assert calls.waiting.get(own, []) == []
        assert 0 < calls.largest[own] < _LARGE
        assert {name for other in others for name, _ in calls.waiting[other]} >= {"fsync", "fdatasync", "unlink"}


def test_an_embedded_state_waits_for_the_journal_alone(tmp_path: Path) -> None:
    """Commits and compaction of the kept pages go on beside the decisions."""
    state = State(tmp_path, SPACE_ID, SPACE, None, StateSettings(IndexLayout(window=8), snapshot_every=30))

    def decide(number: int) -> None:
        url = f"https://a.example/{number if number % 4 == 0 else number % 3}"
        state.decide([(prepared(url, number), None)])

    assert_others_waited(decide, tmp_path / PAGES_FOLDER)
    state.close()


def test_a_service_does_not_wait_while_it_decides(tmp_path: Path) -> None:
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

        assert_others_waited(decide, local.pages.folder)
