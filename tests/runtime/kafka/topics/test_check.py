"""What is wrong with topics, and whether waiting would help."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.size_limits import PAGE_MESSAGE_BYTES
from dedup_service.runtime.kafka.topics import Layout, OutputMode, Topics, plan_for, problems_of
from dedup_service.runtime.kafka.topics.check import TopicDescription
from dedup_service.runtime.kafka.topics.plan import least_message_bytes

TOPICS = Topics()
GOOD = {"cleanup.policy": "delete", "max.message.bytes": str(PAGE_MESSAGE_BYTES), "min.insync.replicas": "1"}
DESCRIPTIONS = {
    name: TopicDescription(name, partitions=1, replication=1, offline=0, under_replicated=0, settings=GOOD)
    for name in TOPICS.all
}
DESCRIPTIONS[TOPICS.fingerprints] = replace(
    DESCRIPTIONS[TOPICS.fingerprints], settings={**GOOD, "retention.ms": "-1", "retention.bytes": "-1"}
)
for name in TOPICS.compacted:
    DESCRIPTIONS[name] = replace(DESCRIPTIONS[name], settings={**GOOD, "cleanup.policy": "compact"})


def faults(**changed: TopicDescription) -> list[tuple[str, str, bool]]:
    """Return topic, setting and whether it may pass of each fault, with some topics changed."""
    descriptions = {**DESCRIPTIONS, **{getattr(TOPICS, name): topic for name, topic in changed.items()}}
    return [(p.topic, p.setting, p.passes) for p in problems_of(list(descriptions.values()), TOPICS) if p.fault]


def test_a_log_that_forgets_is_a_permanent_fault() -> None:
    """The log forgets if it is compacted or has a retention; several partitions have no order."""
    log = replace(DESCRIPTIONS[TOPICS.fingerprints], partitions=2, settings={**GOOD, "cleanup.policy": "compact"})
    assert {(setting, passes) for _, setting, passes in faults(fingerprints=log)} == {
        ("partitions", False),
        ("cleanup.policy", False),
        ("retention.ms", False),
        ("retention.bytes", False),
    }


def test_partitions_without_a_leader_may_have_one_in_a_moment() -> None:
    """A broker that is starting is not a wrong configuration."""
    assert faults(pages=replace(DESCRIPTIONS[TOPICS.pages], offline=1)) == [("pages", "leaders", True)]


@pytest.mark.parametrize("name", ["unique", "duplicate", "dlq", "fingerprints", "verdicts", "stats", "canonical"])
def test_each_topic_must_take_what_the_service_may_have_to_write(name: str) -> None:
    """The advice is the command with the size to set, whatever the limit of `pages` is."""
    topic = DESCRIPTIONS[getattr(TOPICS, name)]
    least = least_message_bytes(TOPICS, 1)[topic.name]
    small = replace(topic, settings=topic.settings | {"max.message.bytes": str(least - 1)})
    assert faults(**{name: small}) == [(topic.name, "max.message.bytes", False)]
    (problem,) = problems_of([small if one is topic else one for one in DESCRIPTIONS.values()], TOPICS)
    assert problem.advice == f"kafka-configs.sh --alter --topic {topic.name} --add-config max.message.bytes={least}"
    enough = replace(topic, settings=topic.settings | {"max.message.bytes": str(least)})
    assert faults(**{name: enough}) == []


def test_stats_of_many_partitions_need_a_larger_topic() -> None:
    """They have the lag of each."""
    many = replace(DESCRIPTIONS[TOPICS.pages], partitions=100_000)
    small = replace(DESCRIPTIONS[TOPICS.stats], settings={**GOOD, "max.message.bytes": str(1 << 20)})
    assert faults(pages=many, stats=small) == [("dedup.stats", "max.message.bytes", False)]


@given(st.integers(1024, 24 << 20), st.integers(1, 10_000), st.text("ab.-", max_size=200))
def test_topics_as_they_are_created_have_no_fault(page_bytes: int, partitions: int, prefix: str) -> None:
    """Whatever size of page and however many partitions are chosen."""
    topics = Topics(prefix)
    plans = plan_for(topics, Layout(partitions=partitions, max_page_bytes=page_bytes))
    made = [TopicDescription(p.name, p.partitions, p.replication, 0, 0, p.settings) for p in plans]
    assert problems_of(made, topics) == []


def test_topics_that_pages_are_passed_on_to_are_needed_only_for_that() -> None:
    """A service that writes verdicts alone does without them, and they are not created for it."""
    plans = plan_for(TOPICS, Layout(outputs=OutputMode.VERDICTS))
    made = [TopicDescription(p.name, p.partitions, p.replication, 0, 0, p.settings) for p in plans]
    assert problems_of(made, TOPICS, OutputMode.VERDICTS) == []
    assert [problem.topic for problem in problems_of(made, TOPICS)] == [TOPICS.unique, TOPICS.duplicate]


def test_offsets_that_would_be_deleted_are_a_fault() -> None:
    """After a pause longer than the retention, nothing would say what was written."""
    assert faults(offsets=replace(DESCRIPTIONS[TOPICS.offsets], settings=GOOD)) == [
        ("dedup.offsets", "cleanup.policy", False)
    ]


def test_canonical_pages_that_would_be_deleted_or_reordered_are_a_fault() -> None:
    """Readers of the table need the latest message of each group, and the groups in one order."""
    topic = DESCRIPTIONS[TOPICS.canonical]
    assert faults(canonical=replace(topic, settings=GOOD)) == [("canonical", "cleanup.policy", False)]
    assert faults(canonical=replace(topic, partitions=2)) == [("canonical", "partitions", False)]


def test_offsets_in_several_partitions_are_a_fault() -> None:
    """Only the first one is read: messages in another would be missed."""
    assert faults(offsets=replace(DESCRIPTIONS[TOPICS.offsets], partitions=3)) == [
        ("dedup.offsets", "partitions", False)
    ]
