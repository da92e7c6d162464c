"""The options of a connection: names of three clients, types, and what is refused."""

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import OURS, TYPES, Connection, read_properties
from dedup_service.runtime.kafka.client.errors import OptionError


def test_options_get_their_types() -> None:
    """Text from a file or a command line becomes the type that the library expects."""
    options = {"ssl_check_hostname": "false", "request_timeout_ms": "4000", "client_id": "me"}
    configs = Connection("a:1, b:2", options).configs(acks="all")
    assert configs["bootstrap_servers"] == ["a:1", "b:2"]
    assert (configs["ssl_check_hostname"], configs["request_timeout_ms"], configs["client_id"]) == (False, 4000, "me")
    assert configs["acks"] == "all"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"security.protocol": "SASL_SSL"}, {"security_protocol": "SASL_SSL"}),
        ({"ssl.ca.location": "ca.pem"}, {"ssl_cafile": "ca.pem"}),
        ({"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"}, {"ssl_cafile": "ca.pem"}),
        ({"sasl.mechanisms": "PLAIN", "sasl.username": "a"}, {"sasl_mechanism": "PLAIN", "sasl_plain_username": "a"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl_check_hostname": False}),
        (
            {"sasl.jaas.config": 'x.ScramLoginModule required username="u" password="p\\"q";'},
            {"sasl_plain_username": "u", "sasl_plain_password": 'p"q'},
        ),
    ],
)
def test_names_of_other_clients_are_understood(given: dict[str, str], expected: dict[str, object]) -> None:
    """An operator's file for Java or librdkafka works unchanged."""
    configs = Connection("a:1", given).configs()
    assert {name: configs[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"security_protocl": "SSL"}, "did you mean security_protocol"),
        ({"acks": "1"}, "the service sets it itself"),
        ({"enable.auto.commit": "true"}, "the service sets it itself"),
        ({"request_timeout_ms": "soon"}, "whole number"),
        ({"ssl_check_hostname": "perhaps"}, "true or false"),
        ({"ssl.truststore.type": "JKS"}, "PEM"),
        ({"sasl.jaas.config": "x required;"}, "username and password"),
        ({"zzz": "1"}, "known are"),
    ],
)
def test_invalid_options_are_refused_at_once(options: dict[str, str], says: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(OptionError, match=says):
        Connection("a:1", options)


@pytest.mark.parametrize("bootstrap", ["", "a:b", ":9092", "a:1,", "a:99999"])
def test_an_invalid_address_is_refused(bootstrap: str) -> None:
    """It is refused before any connection is made."""
    with pytest.raises(ConfigurationError, match="host:port"):
        Connection(bootstrap)


def test_no_password_is_shown() -> None:
    """No password is in a repr or in the error about another option."""
    options = {"sasl_plain_password": "hidden1", "sasl.jaas.config": 'username="u" password="hidden2"'}
    connection = Connection("a:1", options)
    assert "hidden" not in repr(connection)
    with pytest.raises(OptionError) as caught:
        Connection("a:1", {**options, "unknown": "x"})
    assert "hidden" not in str(caught.value)


def test_every_option_belongs_to_all_three_clients() -> None:
    """The list has no option that only some of the library's clients have, or that the service sets."""
    common = (
        set(KafkaProducer.DEFAULT_CONFIG) & set(KafkaConsumer.DEFAULT_CONFIG) & set(KafkaAdminClient.DEFAULT_CONFIG)
    )
    assert set(TYPES) <= common
    assert not OURS & set(TYPES)
    assert set(KafkaProducer.DEFAULT_CONFIG) | set(KafkaConsumer.DEFAULT_CONFIG) >= OURS


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    """The file may have comments, both separators, continued lines, and an equals sign in a value."""
    file = tmp_path / "client.properties"
    file.write_text("# a comment\n! another\n\na=1\nb: 2\nc = x \\\n   = y\nd=\n")
    assert read_properties(file) == {"a": "1", "b": "2", "c": "x = y", "d": ""}


def test_an_invalid_properties_file_is_refused(tmp_path: Path) -> None:
    """The error names the first invalid line; a missing file is refused as well."""
    file = tmp_path / "client.properties"
    file.write_text("a=1\nnonsense\n")
    with pytest.raises(ConfigurationError, match="line 2"):
        read_properties(file)
    with pytest.raises(ConfigurationError, match=r"none\.properties"):
        read_properties(tmp_path / "none.properties")
