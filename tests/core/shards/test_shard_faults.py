"""Shards and a resolver in unusual states."""

import tracemalloc
from dataclasses import replace

import pytest

from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.replica import Outcome
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    LogBase,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    Source,
    first_offset,
    sequence_at,
)
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.outcomes import EntryRemoval, MessageOutcome
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.core.verdict import Action
from tests.core.shards.test_shards import SPACE
from tests.oracle.crawl import Crawl
from tests.page_names import NamesInMemory
from tests.sharded_run import ShardedRun, decided_alone, messages_of, parts_of


def test_a_resolver_lists_no_entries_once_bounds_of_expiry_were_lifted() -> None:
    """What expires next is forgotten with the bounds, and known again when they come back."""
    keep, lifted = (
        Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=8), bounds)
        for bounds in (Keep(max_pages=20), Keep())
    )
    crawl, offset = Crawl(3, 400), 0
    batches: list[list[LogRecord]] = [[PolicyRecord(keep, initial=True, log="a-log")]]
    for policy in (None, lifted, keep):
        if policy is not None:
            batches.append([PolicyRecord(replace(policy))])
        for _ in range(12):
            batches.append([PageRecord(Source("pages", 0, offset + at), crawl.page(), SPACE) for at in range(8)])
            offset += 8
    messages = messages_of(batches)
    sizes: list[int] = []
    run, outcomes = ShardedRun(2), list[Outcome]()
    for message in messages:
        outcomes += run.follow([message])
        candidates = run.answered.candidates
        assert candidates is not None
        sizes.append(len(candidates.state()))
    assert outcomes == decided_alone(messages)
    assert max(sizes[16:25]) < min(sizes[8:13])
    assert run.replica.expired["count"] > 60


def test_records_of_operators_that_wait_for_their_outcome_take_little_memory() -> None:
    """A shard answers to a million retractions in a row without an outcome: each takes some hundred bytes at most."""
    policy = Policy(rule_for(), Action.FLAG, SPACE)
    retractions = [[RetractionRecord(f"https://a.example/{number}", "gone")] for number in range(500)]
    messages = messages_of([[PolicyRecord(policy, initial=True, log="a-log")], *retractions])
    shard = Shard(ShardNumber(1, 1), NamesInMemory())
    tracemalloc.start()
    try:
        for number, message in enumerate(messages):
            shard.begin(message.offset, parts_of(message))
            shard.answer()
            if number == 100:
                before, _ = tracemalloc.get_traced_memory()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 400 * 800


def test_a_shard_that_began_without_a_page_of_a_base_passes_over_its_removal() -> None:
    """The base had retracted it by then; the removal of an unknown page of the log itself is still an error."""
    base = LogBase("corpus", "a-state", "digest", after=0, records=5, entries=5)
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=4), bases=(base,))
    crawl = Crawl(3, 400)
    pages = [[PageRecord(Source("pages", 0, at), crawl.page(), SPACE)] for at in range(12)]
    messages = messages_of([[PolicyRecord(policy, initial=True, log="a-log")], *pages], first_offset(5))

    def follow(removed: int) -> None:
        state = BasedState(DeciderState(ordinal=5))
        shard = Shard(ShardNumber(1, 1), NamesInMemory(), bases=lambda _log, _policy: state)
        for message in messages:
            shard.begin(message.offset, parts_of(message))
            first, count = shard.answer().first, shard.ordinal
            removals = (EntryRemoval(6, removed, 0),) if first == 6 else ()
            shard.learn(MessageOutcome(message.offset, first, bytes(count - first), removals))

    follow(base.records)
    with pytest.raises(StateError, match="their states are not of the same log"):
        follow(sequence_at(first_offset(base.records)))
