"""Topics on a real broker, by function and by command."""

import json
from collections.abc import Callable
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.topics import (
    Layout,
    TopicDescription,
    Topics,
    check,
    create,
    describe,
    remove,
    require_canonical,
    require_log,
)
from deploy.kafka.readiness import wait_until


@pytest.fixture
def twinsieve(broker, topics, capsys) -> Callable[..., tuple[int, str]]:
    """A function that runs `twinsieve topics …` on the test's set; returns exit code and output."""

    def command(*arguments: str, prefix: str = topics.prefix) -> tuple[int, str]:
        code = run(["topics", *arguments, "--bootstrap", broker.bootstrap, "--prefix", prefix])
        told = capsys.readouterr()
        return code, told.out + told.err

    return command


def change(broker, topics: Topics, topic: str, **settings: str) -> None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    with closing(connect(KafkaAdminClient, broker.connection)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, named)])
    await_topics(broker, topics, lambda facts: named.items() <= facts[topic].settings.items())


def await_topics(broker, topics: Topics, true: Callable[[dict[str, TopicDescription]], bool]) -> None:
    """Wait for a condition: a broker answers from the metadata that it has so far."""

    def seen() -> bool:
        return true({fact.name: fact for fact in describe(broker.connection, topics)})

    assert wait_until(seen, timeout_s=30)


def test_created_topics_pass_the_check(broker, topics):
    """Every topic exists, the log has one partition and is kept indefinitely, and no problem is found."""
    assert check(broker.connection, topics) == []
    require_log(broker.connection, topics)
    facts = {fact.name: fact for fact in describe(broker.connection, topics, whole=True)}
    assert tuple(facts) == topics.all
    assert topics.canonical not in {fact.name for fact in describe(broker.connection, topics)}
    require_canonical(broker.connection, topics)
    log = facts[topics.fingerprints]
    kept = {name: log.settings[name] for name in ("cleanup.policy", "retention.ms", "retention.bytes")}
    assert (log.partitions, kept) == (
        1,
        {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    )
    assert facts[topics.pages].partitions == facts[topics.verdicts].partitions == 4


def test_outputs_may_be_larger_than_pages(broker, topics):
    """A small batch can unpack to a large record; all that is accepted fits the outputs, and so do dead letters."""
    sizes = {f.name: int(f.settings["max.message.bytes"]) for f in describe(broker.connection, topics)}
    assert sizes[topics.pages] < sizes[topics.unique] == sizes[topics.duplicate] == sizes[topics.dlq]


def test_create_again_changes_nothing(broker, topics, twinsieve):
    """A topic that exists is not changed; the differences are reported."""
    made = {one.plan.name: one for one in create(broker.connection, topics, Layout(partitions=6))}
    assert not any(one.created for one in made.values())
    assert made[topics.pages].differences == {"partitions": ("4", "6")}
    code, told = twinsieve("create", "--partitions", "6", "--pages-retention", "1d", "--json")
    assert code == 0
    differences = {topic["name"]: topic["differences"] for topic in json.loads(told)["topics"]}
    assert differences[topics.pages]["retention.ms"] == {"found": "604800000", "wanted": "86400000"}
    assert {fact.partitions for fact in describe(broker.connection, topics)} == {4, 1}


def test_create_makes_only_what_is_missing(broker, topics, twinsieve):
    """A set that lost a topic gets that one back."""
    with closing(connect(KafkaAdminClient, broker.connection)) as client:
        client.delete_topics([topics.stats])
    await_topics(broker, topics, lambda facts: topics.stats not in facts)
    assert twinsieve("check")[0] == 1
    code, told = twinsieve("create", "--json")
    assert (code, [t["name"] for t in json.loads(told)["topics"] if t["created"]]) == (0, [topics.stats])
    assert twinsieve("check")[0] == 0


@pytest.mark.parametrize(
    "setting",
    [
        {"cleanup_policy": "compact"},
        {"cleanup_policy": "compact,delete"},
        {"retention_ms": "604800000"},
        {"retention_bytes": "1000000"},
    ],
)
def test_a_log_that_forgets_is_refused(broker, topics, twinsieve, setting):
    """A log that is compacted or has a retention loses pages: `check` names the setting and the repair."""
    change(broker, topics, topics.fingerprints, **setting)
    ((name, _),) = setting.items()
    code, told = twinsieve("check", "--json")
    (problem,) = json.loads(told)["problems"]
    assert code == 1
    assert (problem["topic"], problem["setting"]) == (topics.fingerprints, name.replace("_", "."))
    assert "kafka-configs.sh" in problem["advice"]
    with pytest.raises(ConfigurationError, match=problem["setting"]):
        require_log(broker.connection, topics)


def test_a_log_of_two_partitions_is_refused(broker, topics, twinsieve):
    """Two partitions have no common order."""
    with closing(connect(KafkaAdminClient, broker.connection)) as client:
        client.create_partitions({topics.fingerprints: 2})
    await_topics(broker, topics, lambda facts: facts[topics.fingerprints].partitions == 2)
    code, told = twinsieve("check")
    assert code == 1
    assert "partitions" in told


def test_outputs_must_hold_the_largest_page(broker, topics, twinsieve):
    """What is accepted must fit, however small the batches of `pages` are."""
    for name in (topics.unique, topics.duplicate, topics.dlq):
        change(broker, topics, name, max_message_bytes="16777215")
    change(broker, topics, topics.pages, max_message_bytes="50000000")
    _, told = twinsieve("check", "--json")
    assert {p["topic"] for p in json.loads(told)["problems"]} == {topics.unique, topics.duplicate, topics.dlq}
    assert {p["wanted"] for p in json.loads(told)["problems"]} == {"16777216 at least"}
    _, told = twinsieve("check", "--json", "--outputs", "verdicts")
    assert {p["topic"] for p in json.loads(told)["problems"]} == {topics.dlq}, "the others are not written to"


def test_missing_topics_are_reported_with_the_command(twinsieve):
    """The advice is the command."""
    code, told = twinsieve("check", "--json", prefix="nowhere.")
    problems = json.loads(told)["problems"]
    assert (code, [problem["fault"] for problem in problems]) == (1, [True] * 8 + [False])
    assert problems[-1]["topic"] == "nowhere.canonical"
    assert {problem["advice"] for problem in problems[:-1]} == {"twinsieve topics create --prefix nowhere."}


def test_more_copies_than_brokers_are_refused(broker, twinsieve):
    """The brokers' message reaches the user, as an error of configuration."""
    code, told = twinsieve("create", "--replication", "9", prefix="many.")
    assert code == 2
    assert "replication" in told.lower()


def test_tables_name_every_topic(broker, topics, twinsieve):
    """The table for people has one row per topic."""
    code, told = twinsieve("create")
    assert code == 0
    assert "forever" in told
    assert "topics are correct" in twinsieve("check")[1]


def test_remove_deletes_all_topics(broker, topics):
    """Tests and trials clean up."""
    remove(broker.connection, topics)
    await_topics(broker, topics, lambda facts: not facts)
    remove(broker.connection, topics)


def test_an_address_where_nothing_listens_says_what_to_check(capsys):
    """The error is one line on standard error, with a separate exit code."""
    option = ["--client-option", "bootstrap_timeout_ms=500"]
    assert run(["topics", "check", "--bootstrap", "127.0.0.1:9", *option]) not in {0, 2}
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_a_set_from_before_the_canonical_pages_is_used_as_it_was(broker, topics, twinsieve):
    """`check` says that the topic is missing and who needs it; `create` makes it."""
    with closing(connect(KafkaAdminClient, broker.connection)) as client:
        client.delete_topics([topics.canonical])
    assert wait_until(
        lambda: topics.canonical not in {fact.name for fact in describe(broker.connection, topics, whole=True)},
        timeout_s=30,
    )
    code, told = twinsieve("check", "--json")
    (problem,) = json.loads(told)["problems"]
    assert (code, problem["topic"], problem["fault"]) == (0, topics.canonical, False)
    assert "only `serve --steps canonical` needs it" in problem["advice"]
    require_log(broker.connection, topics)
    with pytest.raises(ConfigurationError, match="topics create"):
        require_canonical(broker.connection, topics)
    assert twinsieve("create")[0] == 0
    require_canonical(broker.connection, topics)
