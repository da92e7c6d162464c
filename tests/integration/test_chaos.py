"""A short round of chaos; `python -m benchmarks.chaos` has fifty long ones, with every fault there is."""

from pathlib import Path

import pytest

from benchmarks.service.broker_faults import kill_broker
from benchmarks.service.faults import freeze_service, kill_pool, kill_service, lose_snapshot, read_again
from benchmarks.service.rounds import Plan, run_round


@pytest.mark.slow
def test_every_page_is_answered_once_and_as_the_oracle_says_whatever_dies(tmp_path: Path) -> None:
    """Services, their workers, their state and the broker die in the middle; what a plain consumer reads is right."""
    plan = Plan(
        seed="test",
        pages=800,
        brokers=1,
        rate=80,
        services=2,
        service_faults=(kill_service, kill_pool, freeze_service, lose_snapshot, read_again),
        broker_faults=(kill_broker,),
        pause_s=1.5,
    )
    result = run_round(plan, tmp_path / "round")
    assert result.complaints == [], (tmp_path / "round" / "history.log").read_text()
    assert result.counts["pages"] >= 800
    assert result.counts["logged_again"] > 0
    assert result.counts["starts"] > plan.services
