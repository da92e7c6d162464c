"""Stats are a function of the log, except for the lag that their writer saw."""

import json

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import PageRecord, Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.verdict import Stats, read_stats, stats_value
from tests.page_names import NamesInMemory


def test_stats_are_read_as_they_were_written() -> None:
    """A field that is added later is ignored."""
    replica = Replica(NamesInMemory())
    page = Page(url="u:1", canonical_url="u:1", id="u:1")
    replica.apply(0, PolicyRecord(Policy(rule_for(), Action.FLAG, "space-1"), initial=True, log="5f0e"))
    replica.apply(1, PageRecord(Source("pages", 0, 0), PreparedPage(page, Fingerprint(1, 2), 3), "space-1"))
    replica.apply(3, RejectedRecord(Source("pages", 1, 0), "no page"))
    value = stats_value(replica, "one", {"pages-0": 2})
    expected = Stats(
        sequence=3,
        log="5f0e",
        space="space-1",
        counts={"policy": 1, "unique": 1, "rejected": 1},
        entries=1,
        lag={"pages-0": 2},
        instance="one",
    )
    assert read_stats(value) == expected
    assert read_stats(json.dumps(json.loads(value) | {"later": 1}).encode()) == expected
