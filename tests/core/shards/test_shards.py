"""Shards and a resolver: the same verdicts as one process, for any number of shards."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.expiry import MAX_BEFORE_PAGE
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, Source, UnwrittenRecord, sequence_at
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from tests.core.decision.generated import Crawl
from tests.core.shards.sharded import Sharded, decided_alone, messages_of

SPACE = "a-space"
GUARDED = replace(rule_for(), guards=Guards(max_pages=3, max_hosts=2, max_titles=2))
RULES = [rule_for(), GUARDED, rule_for("body"), MatchRule(keys=True, verified=rule_for().verified)]


def log_of(seed: int, pages: int, rule: MatchRule, window: int, keep: Keep | None = None) -> Iterator[list[LogRecord]]:
    """A generated crawl with all that operators do, as the records of each message."""
    policy = Policy(rule, Action.FLAG, SPACE, IndexLayout(slots=8, window=window), keep or Keep())
    yield [PolicyRecord(policy, initial=True, log="a-log")]
    rng, offset, sequences = random.Random(seed), 0, list[int]()
    message = 1
    for batch, changes in Crawl(seed, pages).batches(window):
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


@pytest.mark.parametrize("shards", [1, 2, 4, 8])
@pytest.mark.parametrize("rule", RULES)
def test_any_number_of_shards_gives_the_outcomes_of_one_process(shards: int, rule: MatchRule) -> None:
    """Copies, visits, claims, corrections, retractions, expiry and changes of policy give the same outcomes."""
    messages = messages_of(list(log_of(shards, 600, rule, window=16)))
    expected = decided_alone(messages)
    assert list(Sharded(shards).decide(messages)) == expected
    assert len({outcome.verdict.kind for outcome in expected if outcome.verdict is not None}) > 3
