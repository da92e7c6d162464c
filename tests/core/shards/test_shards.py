"""Shards and a resolver, beyond what `tests/oracle` compares: crowds, lists, replicas, and outcomes of other logs."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    Source,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.shards import shard as shard_module
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts, decode_outcome
from tests.core.decision.crowded import page_of
from tests.oracle.crawl import Crawl
from tests.page_names import NamesInMemory
from tests.sharded_run import ShardedRun, decided_alone, messages_of, parts_of

SPACE = "a-space"
GUARDED = replace(rule_for(), guards=Guards(max_pages=3, max_hosts=2, max_titles=2))
RULES = [rule_for(), GUARDED, rule_for("body"), MatchRule(keys=True, verified=rule_for().verified)]


def log_of(
    seed: int, pages: int, rule: MatchRule, window: int, keep: Keep | None = None, most: int | None = None
) -> Iterator[list[LogRecord]]:
    """A generated crawl with all that operators do, as the records of each message; `most` pages in one."""
    policy = Policy(rule, Action.FLAG, SPACE, IndexLayout(slots=8, window=window), keep or Keep())
    yield [PolicyRecord(policy, initial=True, log="a-log")]
    rng, offset, sequences = random.Random(seed), 0, list[int]()
    message = 1
    for batch, changes in Crawl(seed, pages).batches(most or window):
        records: list[LogRecord] = []
        for page in batch:
            records.append(PageRecord(Source("pages", 0, offset), page, SPACE))
            offset += rng.random() > 0.05  # one in twenty is in the log twice
        sequences += [sequence_at(2 * message, place) for place in range(len(records))]
        yield records
        message += 1
        for change in changes:
            if isinstance(change, Keep):
                policy = replace(policy, keep=change)
                yield [PolicyRecord(policy)]
            else:
                yield [change]
            message += 1
        if rng.random() < 0.1:
            yield [UnwrittenRecord(tuple(rng.sample(sequences, min(3, len(sequences)))), "too large")]
            message += 1
        if rng.random() < 0.03:
            yield [PolicyRecord(replace(policy, rule=rng.choice(RULES)))]
            message += 1


def of_crowd(number: int, story: int) -> PreparedPage:
    """Page `number`, which tells a story; all pages have one fingerprint, and are found by nothing else."""
    words = random.Random(story).choices("abcdefghijklmnopqrstuvwxyz" + " " * 6, k=400)
    page = page_of(f"http://site{number % 5}/{number}", ["".join(words)])
    return replace(page, fingerprint=Fingerprint(7, 7), keys=b"")


def test_crowds_of_one_fingerprint_are_cut_alike_by_any_number_of_shards() -> None:
    """Of entries with one fingerprint the earliest 512 are candidates, wherever they are and whatever was removed."""
    chosen = random.Random(3)
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=40), Keep(max_pages=700))
    batches: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log="a-log")]]
    told, offset = [0], 0
    while offset < 1500:
        records: list[LogRecord] = []
        for _ in range(chosen.randrange(1, 40)):
            told.append(chosen.choice([max(told) + 1, max(told) + 1, chosen.choice(told)]))
            records.append(PageRecord(Source("pages", 0, offset), of_crowd(offset, told[-1]), SPACE))
            offset += 1
        batches.append(records)
    messages = messages_of(batches)
    expected = decided_alone(messages)
    unique = sum(one.verdict is not None and one.verdict.kind is VerdictKind.UNIQUE for one in expected)
    assert max(told) + 20 < unique < offset - 20, "no copy is found, or none is cut off"
    for shards in (1, 4):
        assert list(ShardedRun(shards).decide(messages)) == expected


@pytest.mark.parametrize("restarts", [frozenset(), frozenset({40, 41, 75})])
def test_more_entries_than_a_shard_lists_expire_in_their_order(
    restarts: frozenset[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list has the earliest entries alone, of each shard, and comes again before it is used up."""
    monkeypatch.setattr(shard_module, "MAX_EXPIRING", 2)  # of a bound that never changes one entry a page expires
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
    messages = messages_of(list(log_of(9, 300, rule_for(), window=16)))
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
    messages = messages_of(list(log_of(3, 60, rule_for(), window=16)))
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
