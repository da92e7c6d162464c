"""The policy in force, by records of policies alone: the same as that of a replica of the log."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import LogRecord, Policy, PolicyRecord, RetractionRecord, sequence_at
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.control.operator_records import PolicyInForce, policy_after
from dedup_service.runtime.kafka.control.replay import ReplayOptions
from tests.page_names import NamesInMemory

FIRST = PolicyRecord(Policy(rule_for(), Action.FLAG, "space"), initial=True, log="the-log")

policies = st.builds(
    Policy,
    st.sampled_from([rule_for(), rule_for(k=2), rule_for("both")]),
    st.sampled_from(Action),
    st.sampled_from(["space", "space", "another"]),
    st.sampled_from([IndexLayout(), IndexLayout(), IndexLayout(slots=2)]),
)
changes = st.builds(
    PolicyRecord,
    policies,
    initial=st.sampled_from([False, False, True]),
    log=st.none() | st.text(max_size=3),
    replaces=st.none() | st.integers(0, 24).map(sequence_at),
)
logs = st.lists(st.one_of(changes, st.just(RetractionRecord("a:1", "gone"))), max_size=12)


@given(logs, st.booleans())
def test_policy_set_twice_at_once_has_one_answer(records: list[LogRecord], begun: bool) -> None:
    """Initial, void and replacing policies, in any order, leave the policy that every replica of the log has."""
    replica, in_force, taken = Replica(NamesInMemory()), None, 0
    for number, record in enumerate([FIRST, *records] if begun else records):
        sequence = sequence_at(2 * number)
        before = replica.policy_sequence
        replica.apply(sequence, record)
        taken += replica.policy_sequence != before
        if isinstance(record, PolicyRecord):
            in_force = policy_after(in_force, sequence, record)
            assert (in_force.policy, in_force.sequence) == (replica.policy, replica.policy_sequence)
            assert (in_force.changes, in_force.log, in_force.end) == (taken - 1, replica.log, 2 * number + 1)
    assert (in_force is None) == (replica.policy is None)


def test_of_two_changes_of_one_policy_the_first_wins() -> None:
    """The second one names a policy that is no longer in force; a third one that names the first change is taken."""
    begun = policy_after(None, 0, FIRST)
    drop, passing = (replace(FIRST.policy, action=action) for action in (Action.DROP, Action.PASS))
    one, two, three = map(sequence_at, (1, 2, 3))
    after = policy_after(begun, one, PolicyRecord(drop, replaces=0))
    assert after == PolicyInForce(drop, one, 1, "the-log", 2)
    assert policy_after(after, two, PolicyRecord(passing, replaces=0)) == replace(after, end=3)
    assert policy_after(after, three, PolicyRecord(passing, replaces=one)).policy == passing


def test_a_replay_keeps_the_policy_of_canonical_pages() -> None:
    """Whatever else it changes."""
    record = replace(FIRST, policy=replace(FIRST.policy, canonical="longest"))
    for options in (ReplayOptions(), ReplayOptions(rule=rule_for(k=2), action=Action.DROP, keep=Keep.parse("90d"))):
        assert options.applied_to(record).policy.canonical == "longest"
