"""Alive while the steps take turns, ready once pages go through."""

import pytest

from dedup_service.interfaces.http.probes import Health, ProbeAnswer
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.status import ServiceStatus
from tests.interfaces.http.facts import Told, both_steps


@pytest.fixture
def told() -> Told:
    """The service."""
    return Told()


@pytest.fixture
def health(told: Told) -> Health:
    """Its health, with a limit of ten seconds."""
    return Health(told, limit_s=10, clock=told.clock)


def test_alive_while_every_step_took_a_turn_within_the_limit(told: Told, health: Health) -> None:
    """The one that stood still is named."""
    told.status, told.now = both_steps(100.0), 110.0
    assert health.live() == ProbeAnswer(True, "live")
    told.now = 110.5
    assert health.live() == ProbeAnswer(False, "fingerprint has stood still for 10 s, the limit is 10 s")


def test_a_restore_is_alive_while_it_goes_on(told: Told, health: Health) -> None:
    """However long it takes; one that hangs is not."""
    for now in (8.0, 16.0, 24.0):
        told.now = now
        fact = RestoreEvent(int(now), 100, now)
        told.status = ServiceStatus(fact, (), 2)
        health.restore(fact)
        assert health.live().good
    told.now = 35.0
    assert health.live() == ProbeAnswer(False, "restore has stood still for 11 s, the limit is 10 s")


def test_a_start_that_hangs_is_noticed(told: Told, health: Health) -> None:
    """Before there is a restore to speak of."""
    told.now = 10.5
    assert not health.live().good


def test_ready_once_restored_and_assigned(told: Told, health: Health) -> None:
    """Until then it says what is missing."""
    seen = [health.ready()]
    told.status = ServiceStatus(RestoreEvent(1500, 20_000, 1.0), (), 2)
    seen.append(health.ready())
    told.status = both_steps(assigned=())
    seen.append(health.ready())
    told.status = both_steps()
    seen.append(health.ready())
    assert seen == [
        ProbeAnswer(False, "starting"),
        ProbeAnswer(False, "restoring: 1,500 of 20,000 records"),
        ProbeAnswer(False, "fingerprint and decide: no partitions of pages are assigned"),
        ProbeAnswer(True, "ready"),
    ]


def test_not_ready_while_it_stops(told: Told, health: Health) -> None:
    """Pages in hand are finished, no new ones are waited for."""
    told.status = both_steps()
    health.stopping()
    assert health.ready() == ProbeAnswer(False, "stopping")
    assert health.live().good
