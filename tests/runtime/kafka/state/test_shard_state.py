"""The states of a shard and of a resolver in a snapshot."""

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.log_records import Policy
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.candidates import ShardCandidates, shards_in
from dedup_service.core.shards.shard import ShardNumber, ShardState
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.state.shard_state import number_in, replica_state, shard_state


def test_the_state_of_a_shard_is_not_taken_for_that_of_a_resolver() -> None:
    """A resolver refuses the folder of a shard, as a shard that of a resolver."""
    of_shard = replica_state(ShardState(offset=4, ordinal=9), ShardNumber(2, 4))
    assert number_in(of_shard) == ShardNumber(2, 4)
    assert shard_state(of_shard).ordinal == 9
    assert shards_in(of_shard.decider) is None
    policy = Policy(rule_for(), Action.FLAG, "a-space")
    of_resolver = DeciderState(candidates=ShardCandidates(policy, DeciderState(), 4).state())
    assert shards_in(of_resolver) == 4
