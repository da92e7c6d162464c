"""The options of a connection: names of three clients, types, what is refused, and what is never shown."""

from pathlib import Path

import pytest
from hypothesis import given as property_of
from hypothesis import strategies as st
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import OURS, TYPES, Connection, read_properties
from dedup_service.runtime.kafka.client.errors import OptionError


def test_options_get_their_types() -> None:
    """Text from a file or a command line becomes the type that the library expects."""
    options = {
        "security_protocol": "ssl",
        "ssl_check_hostname": "false",
        "request_timeout_ms": "4000",
        "client_id": "me",
    }
    configs = Connection("a:1, b:2", options).configs(acks="all")
    assert configs["bootstrap_servers"] == ["a:1", "b:2"]
    assert (configs["ssl_check_hostname"], configs["request_timeout_ms"], configs["client_id"]) == (False, 4000, "me")
    assert (configs["acks"], configs["security_protocol"]) == ("all", "SSL")


SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
USER = {"sasl.username": "u", "sasl.password": "p"}
JAAS = {"sasl.jaas.config": 'x.ScramLoginModule required username="u" password="p\\"q";'}
SSL = {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"} | USER, {"sasl_mechanism": "PLAIN"}),
        (SSL | {"ssl.ca.location": "ca.pem"}, {"ssl_cafile": "ca.pem"}),
        (SSL | {"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"}, {"ssl_cafile": "ca.pem"}),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"} | USER,
            {"sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": "p"},
        ),
        (SSL | {"ssl.endpoint.identification.algorithm": ""}, {"ssl_check_hostname": False}),
        (SSL | {"ssl.endpoint.identification.algorithm": "HTTPS"}, {"ssl_check_hostname": True}),
        (SCRAM | JAAS, {"sasl_plain_username": "u", "sasl_plain_password": 'p"q'}),
        (SCRAM | JAAS | {"sasl_plain_username": "u"}, {"sasl_plain_username": "u", "sasl_plain_password": 'p"q'}),
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
        ({"security.protocol": "SASL"}, "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"client_dns_lookup": "first"}, "use_all_dns_ips"),
        ({"proxy_url": "proxy:8080"}, "SCHEME://HOST:PORT"),
        ({"proxy_url": "ftp://proxy:8080"}, "http, socks5, socks5h"),
        ({"proxy_url": "http://proxy:port"}, "SCHEME://HOST:PORT"),
        ({"client.id": "a", "client_id": "b"}, "client.id and client_id mean the same"),
        (SSL | {"ssl.ca.location": "a", "ssl_cafile": "b"}, "ssl_ca_location and ssl_cafile mean the same"),
        (SSL | {"ssl_check_hostname": "true", "ssl.endpoint.identification.algorithm": ""}, "differ"),
        (SSL | {"ssl.endpoint.identification.algorithm": "http"}, "https"),
        (SCRAM | JAAS | {"sasl.username": "other"}, "sasl_jaas_config and sasl_username differ"),
        (SCRAM | JAAS | {"sasl_plain_password": "other"}, "sasl_jaas_config and sasl_plain_password differ"),
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


def test_the_same_option_under_two_names_is_one_option() -> None:
    """Two names with one value are no contradiction."""
    assert Connection("a:1", {"client.id": "b", "client_id": "b"}).configs()["client_id"] == "b"


def test_a_proxy_url_with_a_password_is_not_in_the_repr() -> None:
    """The address is shown, its user and password are not."""
    connection = Connection("a:1", {"proxy_url": "http://user:hidden@proxy:8080"})
    assert repr(connection) == "Connection('a:1', {'proxy_url': 'http://…@proxy:8080'})"
    assert connection.configs()["proxy_url"] == "http://user:hidden@proxy:8080"


def test_a_password_in_an_address_of_brokers_is_refused_and_not_shown() -> None:
    """It would be in each log line that names the brokers."""
    with pytest.raises(ConfigurationError, match=r"sasl\.password") as caught:
        Connection("user:hidden@kafka:9092")
    assert "hidden" not in str(caught.value)


SECRETS = st.from_regex(r"zq[A-Za-z0-9]{3,20}qz", fullmatch=True)


def places_of(secret: str) -> list[dict[str, str]]:
    """Options that hold the secret, each alone."""
    return [
        SCRAM | {"sasl.username": "u", "sasl.password": secret},
        SCRAM | {"sasl.jaas.config": f'x.ScramLoginModule required username="u" password="{secret}";'},
        SCRAM | {"sasl.jaas.config": f"x.ScramLoginModule required password={secret};"},
        SSL | {"ssl_certfile": "none.pem", "ssl.key.password": secret},
        {"ssl.truststore.password": secret},
        {"proxy_url": f"http://u:{secret}@proxy:8080"},
        {"proxy_url": f"socks5://{secret}@proxy:8080"},
        {"proxy_url": f"u:{secret}@proxy:8080"},
        {"proxy_url": f"http://u:{secret}/@proxy:8080"},
    ]


MISTAKES: list[dict[str, str]] = [
    {},
    {"unknown": "x"},
    {"acks": "1"},
    {"security_protocol": "TLS"},
    {"security_protocol": "PLAINTEXT"},
    {"sasl_mechanism": "OAUTHBEARER"},
    {"sasl_plain_password": "another"},
    {"request_timeout_ms": "soon"},
]


@property_of(secret=SECRETS)
def test_no_secret_is_in_a_repr_or_an_error(secret: str) -> None:
    """Whatever else is wrong: no option that may hold a secret is quoted, nor one that holds it by mistake."""
    by_mistake = [{name: secret} for name in (*TYPES, "sasl.pasword") if name != "client_id"]
    for options in [*places_of(secret), *by_mistake]:
        for mistake in MISTAKES:
            connection, error = made({**options, **mistake})
            assert secret not in f"{error} {error!r}"
            if connection is not None and options not in by_mistake:
                assert secret not in repr(connection)
                assert secret not in connection.redacted(f"the library says {connection.configs()}")


def made(options: dict[str, str]) -> tuple[Connection | None, ConfigurationError | None]:
    """The connection, or why it is refused."""
    try:
        return Connection("a:1", options), None
    except ConfigurationError as error:
        return None, error


def test_every_option_belongs_to_all_three_clients() -> None:
    """The list has no option that only some of the library's clients have, or that the service sets."""
    common = (
        set(KafkaProducer.DEFAULT_CONFIG) & set(KafkaConsumer.DEFAULT_CONFIG) & set(KafkaAdminClient.DEFAULT_CONFIG)
    )
    assert set(TYPES) <= common
    assert not OURS & set(TYPES)
    assert set(KafkaProducer.DEFAULT_CONFIG) | set(KafkaConsumer.DEFAULT_CONFIG) >= OURS


def write(folder: Path, text: str) -> Path:
    """Return a properties file with this text."""
    file = folder / "client.properties"
    file.write_bytes(text.encode())
    return file


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    """The file may have comments, both separators, continued lines, and an equals sign in a value."""
    text = "# a comment\n! another\n\na=1\nb: 2\nc = x \\\n   = y\nd=\n"
    assert read_properties(write(tmp_path, text)) == {"a": "1", "b": "2", "c": "x = y", "d": ""}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_password_that_ends_in_a_backslash_does_not_swallow_the_next_line(tmp_path: Path, end: str) -> None:
    """Two backslashes are one in the password, and the connection is encrypted as the next line says."""
    lines = ["sasl.password=abc\\\\", "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=u", ""]
    configs = Connection("a:1", read_properties(write(tmp_path, end.join(lines)))).configs()
    assert (configs["security_protocol"], configs["sasl_plain_password"]) == ("SASL_SSL", "abc\\")


def test_white_space_at_the_end_belongs_to_a_password_alone(tmp_path: Path) -> None:
    """As with Java a password keeps it; in another option it is a mistake without a meaning."""
    text = "security.protocol=SASL_SSL \nsasl.mechanism=PLAIN\t\nsasl.username=u\nsasl.password=p \n"
    configs = Connection("a:1", read_properties(write(tmp_path, text))).configs()
    assert (configs["security_protocol"], configs["sasl_mechanism"]) == ("SASL_SSL", "PLAIN")
    assert configs["sasl_plain_password"] == "p "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a=1\nnonsense\n", "line 2 is not name=value"),
        ("a=1\n=hidden\n", "line 2 is not name=value"),
        ("a=1\n\nb=hidden\\u12\n", "line 3"),
        ("a=hidden\\ud83d\n", "half a character"),
        ("sasl.password=hidden\nsasl.password=hidden2\n", "sasl.password in lines 1 and 2"),
        ("sasl.password=hidden\nsasl_password=hidden\n", "lines 1 and 2"),
    ],
)
def test_an_invalid_properties_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """The error names the first invalid line, and quotes no value."""
    with pytest.raises(ConfigurationError, match=says) as caught:
        read_properties(write(tmp_path, text))
    assert "hidden" not in str(caught.value)


def test_a_properties_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file is named; of one that is not UTF-8 no byte is shown."""
    with pytest.raises(ConfigurationError, match=r"none\.properties"):
        read_properties(tmp_path / "none.properties")
    (tmp_path / "latin.properties").write_bytes(b"sasl.password=\xe4\n")
    with pytest.raises(ConfigurationError, match="not UTF-8") as caught:
        read_properties(tmp_path / "latin.properties")
    assert "e4" not in str(caught.value)
