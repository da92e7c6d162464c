"""Restore from a real log, with transactions and their markers."""

from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from benchmarks.restore import RestoreRun, fill, restored
from dedup_service.core.log_records import Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka import service as service_module
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.control.operator_records import PolicyDiffersError
from dedup_service.runtime.kafka.messages.log_record import log_message
from dedup_service.runtime.kafka.service import DECIDE
from dedup_service.runtime.kafka.state import restore as restore_module
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE
from dedup_service.runtime.kafka.steps import deciding
from dedup_service.runtime.kafka.steps.deciding import DecideSettings
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.resources import build_fingerprinter
from tests.integration.conftest import Broker
from tests.integration.kafka.test_service import Progress, running, settings

PENDING = 1000


class HasBootstrap(Protocol):
    @property
    def bootstrap(self) -> str: ...


def test_a_state_is_restored_from_the_log_and_from_its_snapshot(
    broker: HasBootstrap, topics: Topics, tmp_path: Path
) -> None:
    """The state is the expected one: from the log, from a snapshot, and without page names."""
    run = RestoreRun(broker.bootstrap, topics.prefix, tmp_path)
    fill(run, 0, 4_000)
    restored(run, 4_000, 4_000, "log")
    fill(run, 4_000, 6_000)
    restored(run, 6_000, 2_000, "both")
    (tmp_path / NAMES_FILE).unlink()
    fill(run, 6_000, 8_000)
    restored(run, 8_000, 2_000, "no names")


@pytest.fixture
def log_with_two_policies(broker: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """A log that begins with k = 5 and goes on with k = 2, and ten times the outcomes that may be pending."""
    monkeypatch.setattr(restore_module, "MESSAGES_AT_ONCE", 50)
    limited = partial(DecideSettings, max_pending_outcomes=PENDING // 10)
    monkeypatch.setattr(service_module, "DecideSettings", limited)
    monkeypatch.setattr(deciding, "DecideSettings", limited)
    append(broker.connection, topics.pages, [Message(topics.pages, b"no page", partition=0)] * PENDING)
    early, later = (Policy(rule_for(k=k), Action.FLAG, build_fingerprinter().space_id) for k in (5, 2))
    rejected = [RejectedRecord(Source(topics.pages, 0, offset), "no page") for offset in range(PENDING)]
    records = [PolicyRecord(early, initial=True, log="the-log"), *rejected[:-10], PolicyRecord(later), *rejected[-10:]]
    append(broker.connection, topics.fingerprints, [log_message(topics.fingerprints, record) for record in records])
    return topics


@pytest.mark.slow
@pytest.mark.parametrize(("k", "refused"), [(5, True), (2, False), (None, False)])
def test_restore_that_ends_early_is_checked_at_the_end(
    broker: Broker, log_with_two_policies: Topics, tmp_path: Path, k: int | None, refused: bool
) -> None:
    """The rule of a service is compared with the policy at the end of the log, not where the restore ended."""
    progress, rule = Progress(), None if k is None else rule_for(k=k)
    chosen = settings(broker, log_with_two_policies, tmp_path, rule=rule, steps=frozenset({DECIDE}))

    def run_to_the_end() -> None:
        with running(chosen, progress):
            progress.wait_for(lambda: progress.done >= PENDING)

    if refused:
        with pytest.raises(PolicyDiffersError, match="the log decides by rule"):
            run_to_the_end()
    else:
        run_to_the_end()
