"""Records that operators add to the log of a service: policies, retractions, corrections."""

import json
from contextlib import closing

import pytest

from dedup_service.core.log_records import CorrectionRecord, Policy, PolicyRecord, RetractionRecord, sequence_at
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.control.operator_records import append_policy, policy_in_force
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker

pytestmark = pytest.mark.slow

SPACE = "a-space"


def log_of(connection: Connection, topics: Topics) -> list[object]:
    """Return all records."""
    with closing(LogConsumer(connection, topics.fingerprints)) as reader:
        return [record for batch in reader.read_to_end() for _, record in numbered(batch)]


def begin(broker: Broker, topics: Topics) -> None:
    """Begin the log as a first service does."""
    policy = Policy(rule_for(), Action.FLAG, SPACE)
    append_policy(broker.connection, topics, PolicyRecord(policy, initial=True, log="the-log"))


def call(*arguments: str, broker: Broker, topics: Topics) -> int:
    """Run the command line against these topics."""
    return run([*arguments, "--bootstrap", broker.bootstrap, "--prefix", topics.prefix])


def test_a_policy_is_shown_and_changed(broker: Broker, topics: Topics, capfd: pytest.CaptureFixture[str]) -> None:
    """Options that are left out keep their value, and the space never changes; a second initial record is void."""
    begin(broker, topics)
    begin(broker, topics)
    assert call("policy", "set", "--action", "drop", broker=broker, topics=topics) == 0
    assert call("policy", "set", "--profile", "balanced:2", broker=broker, topics=topics) == 0
    assert call("policy", "set", "--profile", "balanced:2", broker=broker, topics=topics) == 0
    out = capfd.readouterr().out
    assert out.splitlines()[-1] == "the log already has this policy: balanced:2; action drop"
    in_force = policy_in_force(broker.connection, topics)
    assert in_force.policy == Policy(rule_for(k=2), Action.DROP, SPACE)
    assert (in_force.sequence, in_force.changes, in_force.log) == (sequence_at(3), 2, "the-log")
    assert call("policy", "show", "--json", broker=broker, topics=topics) == 0
    assert json.loads(capfd.readouterr().out)["action"] == "drop"
    assert log_of(broker.connection, topics)[2:] == [
        PolicyRecord(Policy(rule_for(), Action.DROP, SPACE), replaces=0),
        PolicyRecord(Policy(rule_for(k=2), Action.DROP, SPACE), replaces=sequence_at(2)),
    ]


def test_retractions_and_corrections_are_in_the_log(
    broker: Broker, topics: Topics, capfd: pytest.CaptureFixture[str]
) -> None:
    """They are stored by canonical URL, and their sequence is printed."""
    begin(broker, topics)
    assert call("retract", "https://A.example/1", "nowhere", "https://a.example/1", broker=broker, topics=topics) == 0
    out, err = capfd.readouterr()
    one, two = sequence_at(1), sequence_at(2)
    assert out == f"sequence {one}: retraction of https://a.example/1\nsequence {two}: retraction of nowhere\n"
    assert "'nowhere' is no Web address" in err
    correction = ("correct", "https://a.example/1", "--not-duplicate-of", "https://b.example/#x", "--reason", "looked")
    assert call(*correction, broker=broker, topics=topics) == 0
    assert "is not a duplicate of https://b.example/" in capfd.readouterr().out
    assert log_of(broker.connection, topics)[1:] == [
        RetractionRecord("https://a.example/1", "retracted by hand"),
        RetractionRecord("nowhere", "retracted by hand"),
        CorrectionRecord("https://a.example/1", "https://b.example/", False, "looked"),
    ]


def test_nothing_is_added_to_a_log_that_no_service_began(
    broker: Broker, topics: Topics, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first record has to be a policy with the space of a service."""
    for arguments in (
        ("retract", "https://a.example/1"),
        ("policy", "set", "--profile", "balanced:2"),
        ("policy", "show"),
    ):
        assert call(*arguments, broker=broker, topics=topics) == 1
        assert "is empty" in capfd.readouterr().err
    assert log_of(broker.connection, topics) == []
