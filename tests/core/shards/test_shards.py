"""Shards and a resolver, beyond what `tests/oracle` compares: crowds, lists, replicas, and outcomes of other logs."""

import random
from dataclasses import replace

import pytest

from dedup_service.core.decision import table_answers
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    Source,
)
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards import answers
from dedup_service.core.shards import shard as shard_module
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts, decode_outcome
from tests.core.decision.test_identical_crowds import of_crowd
from tests.oracle.crawl import Crawl, written_log
from tests.page_names import NamesInMemory
from tests.sharded_run import LoggedMessage, ShardedRun, decided_alone, messages_of, parts_of

SPACE = "a-space"


def log_of(seed: int, pages: int) -> list[LoggedMessage]:
    """A generated crawl with all that operators do, as messages of a log."""
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=16))
    return written_log(seed, pages, policy, most=16, rules=[rule_for("body"), rule_for()]).messages


@pytest.mark.parametrize("seed", range(4))
def test_crowds_of_one_fingerprint_are_cut_alike_by_any_number_of_shards(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many entries with one fingerprint the earliest are candidates, wherever they are and whatever was removed."""
    for module in (table_answers, answers):
        monkeypatch.setattr(module, "MAX_IDENTICAL", 2)
    chosen = random.Random(seed)
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=40), Keep(max_pages=30))
    batches: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log="a-log")]]
    offset = 0
    for _ in range(12):
        pages = [of_crowd(chosen.getrandbits(chosen.choice([5, 32]))) for _ in range(chosen.randrange(1, 40))]
        batches.append([PageRecord(Source("pages", 0, offset + at), page, SPACE) for at, page in enumerate(pages)])
        offset += len(pages)
    messages = messages_of(batches)
    expected = decided_alone(messages)
    for shards in (1, 4):
        assert list(ShardedRun(shards).decide(messages)) == expected
    monkeypatch.setattr(table_answers, "MAX_IDENTICAL", 512)
    assert decided_alone(messages) != expected, "the crowds of this log are not cut"


@pytest.mark.parametrize("restarts", [frozenset(), frozenset({40, 41, 75})])
def test_more_entries_than_a_shard_lists_expire_in_their_order(
    restarts: frozenset[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list has the earliest entries alone, of each shard, and comes again before it is used up."""
    monkeypatch.setattr(shard_module, "MAX_BEFORE_PAGE", 0)  # of a bound that never changes one entry a page expires
    monkeypatch.setattr(shard_module, "OLDEST_EVERY", 40)
    lengths: list[tuple[int, bool]] = []
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=16), Keep(max_pages=450))
    batches: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log="a-log")]]
    crawl, offset = Crawl(6, 1100), 0
    while offset < 1100:
        records = [PageRecord(Source("pages", 0, offset + at), crawl.page(), SPACE) for at in range(9)]
        batches.append(list(records))
        offset += len(records)
    messages = messages_of(batches)
    run = ShardedRun(2, restarts=restarts)
    answer = run.shards[0].answer

    def noted(**options: bool) -> MessageAnswer:
        answered = answer(**options)
        lengths.append((len(answered.oldest), answered.is_all))
        return answered

    run.shards[0].answer = noted  # type: ignore[method-assign]
    assert list(run.decide(messages)) == decided_alone(messages)
    assert run.replica.expired["count"] > 100
    assert any(listed and not is_all for listed, is_all in lengths), "no list was cut"
    assert any(not listed for listed, _ in lengths[-9:]), "every answer has a list"


def test_replicas_of_a_shard_give_the_same_answers_whatever_they_have_learned_so_far() -> None:
    """A replica that learns each outcome at once and one that learns it when it must give the same bytes."""
    messages = log_of(9, 300)
    resolved = ShardedRun(2)
    list(resolved.decide(messages))
    outcomes = [decode_outcome(value)[1] for value in resolved.outcomes]
    eager, lazy = (Shard(ShardNumber(1, 2), NamesInMemory()) for _ in range(2))
    learned = 0
    for number, message in enumerate(messages):
        for shard in (eager, lazy):
            shard.begin(message.offset, parts_of(message))
        for outcome in outcomes[max(0, number - 1) : number]:
            eager.learn(outcome)
        while not lazy.is_ready:
            lazy.learn(outcomes[learned])
            learned += 1
        first, second = (list(answer_parts(shard.answer(), shard.number, "a-log")) for shard in (eager, lazy))
        assert first == second
    assert learned < len(messages) - 1, "the second replica was never behind"


def test_an_outcome_of_another_log_is_refused() -> None:
    """A shard raises StateError for an outcome of other pages than it has read, and has not learned it then."""
    first, _, *rest = log_of(3, 60)  # without the time, so that pages come second
    messages = [first, *rest]
    resolved = ShardedRun(1)
    list(resolved.decide(messages))
    shard = Shard(ShardNumber(1, 1), NamesInMemory())
    for message in messages[:2]:
        shard.begin(message.offset, parts_of(message))
        shard.answer()
    one, two = (decode_outcome(value)[1] for value in resolved.outcomes[:2])
    assert shard.learn(one)
    assert not shard.learn(one)
    with pytest.raises(StateError, match="do not read the same log"):
        shard.learn(replace(two, kept=two.kept[:-1]))
    with pytest.raises(StateError, match="outcomes are missing"):
        shard.learn(replace(two, offset=two.offset + 2))
    assert shard.learn(two)


def test_slots_that_cannot_be_shared_are_refused() -> None:
    """Three shards cannot share eight slots; the error says which numbers can."""
    with pytest.raises(ConfigurationError, match="use 1, 2, 4, 8"):
        ShardNumber(1, 3).check(8)
    with pytest.raises(ConfigurationError, match="counted from 1"):
        ShardNumber.parse("0/4")
    with pytest.raises(ConfigurationError, match="as in 1/4"):
        ShardNumber.parse("1of4")
