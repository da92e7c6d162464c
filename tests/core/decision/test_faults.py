"""A fault of the native core, made on purpose: the page is undecided, and everything else goes on."""

from pathlib import Path

import pytest

from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.embedded.state import State
from dedup_service.runtime.live_stats.live_stats import LiveStats
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID, kill, prepared

FAULT = "a fault of twinsieve: on purpose; report it"
FIRST = PolicyRecord(Policy(rule_for(), Action.FLAG, SPACE_ID), initial=True, log="a-log")


def kinds(outcomes: list[Outcome | None]) -> list[VerdictKind | None]:
    """Return the verdicts of outcomes."""
    return [outcome and outcome.verdict and outcome.verdict.kind for outcome in outcomes]


def test_a_fault_leaves_one_page_undecided() -> None:
    """Those before and after it have their verdicts, and a copy of it is the first of its text."""
    names = NamesInMemory()
    names.add(1, "a", "http://a.test/")
    decider = Decider(rule_for(), SPACE_ID, names)
    decider._native.panic_at(2)
    pages = [prepared(f"http://{host}.test/", story) for host, story in (("a", 1), ("b", 2), ("c", 2), ("d", 1))]
    decisions = list(decider.decide_all(list(enumerate(pages, 1))))
    assert [decision.verdict.kind for decision in decisions] == ["unique", "undecided", "unique", "duplicate"]
    assert (decisions[1].verdict.reason, decisions[1].kept) == (FAULT, False)


def test_a_replica_goes_on_after_a_fault() -> None:
    """Its log has an outcome for each record."""
    replica = Replica(NamesInMemory())
    replica.apply(0, FIRST)
    assert replica._decider is not None
    replica._decider._native.panic_at(2)
    records = [PageRecord(Source("pages", 0, at), prepared(f"http://{at}.test/", 1), SPACE_ID) for at in range(3)]
    assert kinds(replica.apply_many(list(enumerate(records, 1)))) == ["unique", "undecided", "duplicate"]


def test_a_state_goes_on_after_a_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The verdict is durable, and so is what came after it; the log and observers tell of the fault."""
    live_stats = LiveStats(mode="filter")
    state = State(tmp_path, SPACE_ID, {}, observers=[live_stats])
    state._decider._native.panic_at(2)
    pages = [prepared(f"http://{host}.test/", story) for host, story in (("a", 1), ("b", 1), ("c", 1))]
    verdicts = state.decide([(page, None) for page in pages])
    assert [(verdict.kind, verdict.reason) for verdict in verdicts][1] == (VerdictKind.UNDECIDED, FAULT)
    assert [verdict.is_fault for verdict in verdicts] == [False, True, False]
    assert [(record.levelname, record.message) for record in caplog.records] == [("ERROR", f"http://b.test/: {FAULT}")]
    assert live_stats.problems == {"fault": 1}
    kill(state)
    again = State(tmp_path, SPACE_ID, {})
    assert [again.journal.log.verdict_at(sequence) for sequence in (1, 2, 3)] == verdicts
    again.close()


def test_a_decider_that_was_stopped_decides_nothing_more(tmp_path: Path) -> None:
    """An error in the middle of a batch, as of a closed store: nobody knows how far the last page came."""
    state = State(tmp_path, SPACE_ID, {})
    assert state._entries is not None
    state._entries.pages.close()
    with pytest.raises(StateError, match="closed"):
        state.decide([(prepared("http://a.test/", 1), None)])
    with pytest.raises(StateError, match="open its state again"):
        state._decider.decide(9, prepared("http://b.test/", 2))
