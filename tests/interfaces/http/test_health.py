"""A service is live while the loops of its steps are running, and ready once it can process pages."""

import pytest

from dedup_service.interfaces.http.probes import Health, ProbeAnswer
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.status import ServiceStatus
from tests.interfaces.http.fake_status import FakeStatus, both_steps


@pytest.fixture
def status() -> FakeStatus:
    """The status of the service, which the test changes."""
    return FakeStatus()


@pytest.fixture
def health(status: FakeStatus) -> Health:
    """The health of the service, with a limit of ten seconds."""
    return Health(status, limit_s=10, clock=status.clock)


def test_live_while_every_step_took_a_turn_within_the_limit(status: FakeStatus, health: Health) -> None:
    """The answer names the step that takes no turns."""
    status.status, status.now = both_steps(100.0), 110.0
    assert health.live() == ProbeAnswer(True, "live")
    status.now = 110.5
    assert health.live() == ProbeAnswer(
        False, "fingerprint has made no progress for 10 s, the limit is 10 s: restart the process"
    )


def test_a_restore_is_live_while_it_makes_progress(status: FakeStatus, health: Health) -> None:
    """It may take any time, but a restore that hangs is not live."""
    for now in (8.0, 16.0, 24.0):
        status.now = now
        event = RestoreEvent(int(now), 100, now)
        status.status = ServiceStatus(event, (), 2)
        health.restore(event)
        assert health.live().good
    status.now = 35.0
    assert health.live() == ProbeAnswer(
        False, "restore has made no progress for 11 s, the limit is 10 s: restart the process"
    )


def test_a_start_that_hangs_is_not_live(status: FakeStatus, health: Health) -> None:
    """The limit applies before the restore has begun, too."""
    status.now = 10.5
    assert not health.live().good


def test_ready_once_restored_and_assigned(status: FakeStatus, health: Health) -> None:
    """Until then the answer says what is missing."""
    answers = [health.ready()]
    status.status = ServiceStatus(RestoreEvent(1500, 20_000, 1.0), (), 2)
    answers.append(health.ready())
    status.status = both_steps(assigned=())
    answers.append(health.ready())
    status.status = both_steps()
    answers.append(health.ready())
    assert answers == [
        ProbeAnswer(False, "starting"),
        ProbeAnswer(False, "restoring: 1,500 of 20,000 records"),
        ProbeAnswer(False, "fingerprint and decide: no partitions of pages are assigned"),
        ProbeAnswer(True, "ready"),
    ]


def test_not_ready_while_it_stops(status: FakeStatus, health: Health) -> None:
    """Pages in flight are finished, but no new ones are accepted."""
    status.status = both_steps()
    health.stopping()
    assert health.ready() == ProbeAnswer(False, "stopping")
    assert health.live().good
