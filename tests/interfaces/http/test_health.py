"""A service is live while the loops of its steps are running, and ready once it can process pages."""

from dataclasses import replace

import pytest

from dedup_service.interfaces.http.probes import BLIND_LIMIT_S, Health, ProbeAnswer
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.status import Backlog, ServiceStatus
from tests.interfaces.http.fake_status import FakeStatus, both_steps, waiting


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


def test_a_start_is_live_while_it_tells_of_progress(status: FakeStatus, health: Health) -> None:
    """What comes before the restore, too; it has not started before it is restored, however live it is."""
    for now in (8.0, 16.0, 24.0):
        status.status, status.now = ServiceStatus(None, (), 2, start=("downloading MB of s3://b/c: 9", now)), now + 8
        assert health.live().good
        assert health.started() == health.ready() == ProbeAnswer(False, "downloading MB of s3://b/c: 9")
    status.now = 35.0
    assert not health.live().good
    status.status = both_steps(35.0)
    assert health.started().good
    status.status = ServiceStatus(None, (), 2, waits_for="base corpus: not given")
    assert health.started().good


def test_a_process_without_a_base_is_live_and_not_ready(status: FakeStatus, health: Health) -> None:
    """However long it waits: to start it again would not help."""
    status.status = ServiceStatus(None, (), 2, waits_for="base corpus: manifest 5f expected, 77 found")
    status.now = 1000.0
    assert health.live().good
    assert health.ready() == ProbeAnswer(False, "base corpus: manifest 5f expected, 77 found")


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
        ProbeAnswer(False, "restoring: 1,500 of 20,000 messages"),
        ProbeAnswer(False, "fingerprint and decide: no partitions of pages are assigned"),
        ProbeAnswer(True, "ready"),
    ]


def test_a_step_without_partitions_says_what_it_waits_for(status: FakeStatus, health: Health) -> None:
    """A resolver that has yet to decide the log has no partitions, and says how far it is or which shard it lacks."""
    steps = tuple(replace(step, waits_for="is at 5 of 70") for step in both_steps(assigned=()).steps[1:])
    status.status = replace(both_steps(), steps=steps, expected=1)
    assert health.ready() == ProbeAnswer(False, "decide: is at 5 of 70")


def test_not_ready_while_records_of_a_partition_wait_and_none_is_done(status: FakeStatus, health: Health) -> None:
    """The answer names the partition, how long, and whether the page is in the log; it is live all the same."""
    rows = (waiting("fingerprint", 1, 300, 95.0), waiting("decide", 1, 300, 91.0), waiting("decide", 0, 9, 120.0))
    status.status = both_steps(assigned=(1,), backlog=Backlog(partitions=rows, measured_at=0.0))
    assert health.ready() == ProbeAnswer(
        False, "fingerprint: 300 records of pages-1 wait, and none was done for 95 s, the limit is 90 s"
    )
    status.status = both_steps(assigned=(0,), backlog=Backlog(partitions=rows, measured_at=0.0))
    assert health.ready().text.startswith("decide: 9 records of pages-0 wait, and none was done for 120 s")
    status.status = both_steps(assigned=(1,), backlog=Backlog(partitions=rows[:2][::-1], measured_at=0.0))
    assert not health.ready().good
    assert health.live().good


def test_behind_but_moving_is_ready(status: FakeStatus, health: Health) -> None:
    """A long lag, old pages, or partitions of other processes that stand still do not make it unready."""
    rows = (waiting("fingerprint", 0, 10**7, 4.0), waiting("decide", 0, 10**7, 89.0), waiting("decide", 3, 5, 1e5))
    status.status = both_steps(assigned=(0, 1), backlog=Backlog(partitions=rows, measured_at=0.0))
    assert health.ready() == ProbeAnswer(True, "ready")


def test_not_ready_while_nobody_knows_whether_pages_wait(status: FakeStatus, health: Health) -> None:
    """Brokers that answer nothing: the last figures are no reason to say ready."""
    assert BLIND_LIMIT_S <= 15
    backlog = Backlog(partitions=(waiting("decide", 0, 0),), measured_at=100.0, problem="no broker at kafka:9092")
    status.status = both_steps(backlog=backlog)
    status.now = 100.0 + BLIND_LIMIT_S
    assert health.ready().good
    status.now += 1
    assert health.ready() == ProbeAnswer(False, "for 16 s it is not known whether pages wait: no broker at kafka:9092")
