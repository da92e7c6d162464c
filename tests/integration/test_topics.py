"""Topics on a real broker, by function and by command."""

import json
from collections.abc import Callable

import pytest

from dedup_service.interfaces.cli.main import run
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
from tests.hangs import HANG_S


@pytest.fixture
def twinsieve(broker, topics, capsys) -> Callable[..., tuple[int, str]]:
    """A function that runs `twinsieve topics …` on the test's set; returns exit code and output."""

    def command(*arguments: str, prefix: str = topics.prefix) -> tuple[int, str]:
        code = run(["topics", *arguments, "--bootstrap", broker.bootstrap, "--prefix", prefix])
        told = capsys.readouterr()
        return code, told.out + told.err

    return command


def await_topics(broker, topics: Topics, true: Callable[[dict[str, TopicDescription]], bool]) -> None:
    """Wait for a condition: a broker answers from the metadata that it has so far."""

    def seen() -> bool:
        return true({fact.name: fact for fact in describe(broker.connection, topics)})

    assert wait_until(seen, timeout_s=HANG_S)


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


def test_create_again_changes_nothing(broker, topics, twinsieve):
    """A topic that exists is not changed; the differences are reported."""
    made = {one.plan.name: one for one in create(broker.connection, topics, Layout(partitions=6))}
    assert not any(one.created for one in made.values())
    assert made[topics.pages].differences == {"partitions": ("4", "6")}
    code, told = twinsieve("create", "--partitions", "6", "--retention", "1d", "--json")
    assert code == 0
    differences = {topic["name"]: topic["differences"] for topic in json.loads(told)["topics"]}
    assert differences[topics.pages]["retention.ms"] == {"found": "604800000", "wanted": "86400000"}
    assert {fact.partitions for fact in describe(broker.connection, topics)} == {4, 1}


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


def test_remove_deletes_all_topics(broker, topics):
    """Tests and trials clean up."""
    remove(broker.connection, topics)
    await_topics(broker, topics, lambda facts: not facts)
    remove(broker.connection, topics)


def test_an_address_where_nothing_listens_says_what_to_check(capsys, tmp_path):
    """The error is one line on standard error, with a separate exit code."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap_timeout_ms=500")
    assert run(["topics", "check", "--bootstrap", "127.0.0.1:9", "--properties", str(file)]) not in {0, 2}
    assert "127.0.0.1:9" in capsys.readouterr().err
