"""What is wrong with topics, and whether waiting would help."""

from dataclasses import replace

from dedup_service.runtime.kafka.topics import Topics, problems_of
from dedup_service.runtime.kafka.topics.check import TopicDescription

TOPICS = Topics()
GOOD = {"cleanup.policy": "delete", "max.message.bytes": "1000", "min.insync.replicas": "1"}
DESCRIPTIONS = {
    name: TopicDescription(name, partitions=1, replication=1, offline=0, under_replicated=0, settings=GOOD)
    for name in TOPICS.all
}
DESCRIPTIONS[TOPICS.fingerprints] = replace(
    DESCRIPTIONS[TOPICS.fingerprints], settings={**GOOD, "retention.ms": "-1", "retention.bytes": "-1"}
)
DESCRIPTIONS[TOPICS.offsets] = replace(DESCRIPTIONS[TOPICS.offsets], settings={**GOOD, "cleanup.policy": "compact"})
DESCRIPTIONS[TOPICS.dlq] = replace(DESCRIPTIONS[TOPICS.dlq], settings={**GOOD, "max.message.bytes": "2000"})


def faults(**changed: TopicDescription) -> list[tuple[str, str, bool]]:
    """Return topic, setting and whether it may pass of each fault, with some topics changed."""
    descriptions = {**DESCRIPTIONS, **{getattr(TOPICS, name): topic for name, topic in changed.items()}}
    return [(p.topic, p.setting, p.passes) for p in problems_of(list(descriptions.values()), TOPICS) if p.fault]


def test_topics_as_they_should_be_have_no_fault() -> None:
    """No problem is reported."""
    assert faults() == []


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


def test_dead_letters_must_hold_what_pages_hold() -> None:
    """They also need a little more, for the headers."""
    small = replace(DESCRIPTIONS[TOPICS.dlq], settings=GOOD)
    assert faults(dlq=small) == [("pages.dlq", "max.message.bytes", False)]


def test_offsets_that_would_be_deleted_are_a_fault() -> None:
    """After a pause longer than the retention, nothing would say what was written."""
    assert faults(offsets=replace(DESCRIPTIONS[TOPICS.offsets], settings=GOOD)) == [
        ("dedup.offsets", "cleanup.policy", False)
    ]
