"""All pages of a log, for its groups."""

from dataclasses import replace

import pytest

from dedup_service.runtime.groups.spool import group_spool
from dedup_service.runtime.kafka.explain.log_members import spool_messages
from dedup_service.runtime.kafka.state.temporary_replica import temporary_replica
from tests.runtime.groups.canonical_logs import TimedLog, with_policy
from tests.runtime.kafka.state.list_log import first, page


@pytest.mark.parametrize(
    ("policies", "chosen", "unknown"),
    [
        ([], "earliest", 0),
        (["longest"], "longest", 0),
        (["longest", "newest"], "longest", 1),
        (["newest", "os:system", "complete"], "complete", 2),
        (["os:system"], "earliest", 1),
    ],
)
def test_a_policy_that_is_not_known_is_counted_and_left_out(policies: list[str], chosen: str, unknown: int) -> None:
    """The one before it chooses; written by hand or by a later twinsieve, it stops nobody who reads the log."""
    void = replace(with_policy("oldest"), replaces=17)
    log = TimedLog([first(), *map(with_policy, policies), void, page(0, "http://a.example/", 1)])
    with temporary_replica(log, {}) as reading, group_spool(with_sentences=False) as spool:
        counts = spool_messages([log.messages], spool, reading)  # type: ignore[list-item]
        assert (spool.policy, spool.pages, counts["unknown_policies"]) == (chosen, 1, unknown)
