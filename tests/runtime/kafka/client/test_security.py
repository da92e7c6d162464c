"""Security options that contradict each other, or protect nothing, are refused with what to do."""

from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import SASL_MECHANISMS

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import ALLOWED, Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import OptionError

USER = {"sasl_plain_username": "u", "sasl_plain_password": "p"}
SASL = {"security_protocol": "SASL_SSL"}
KEY = "-----BEGIN PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"security_protocol": "PLAINTEXT"},
        {"security_protocol": "SSL", "ssl_cafile": "ca.pem"},
        {"security_protocol": "SSL"},
        {**SASL, "sasl_mechanism": "scram-sha-512", **USER, "ssl_cafile": "ca.pem"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **USER},
        {"security_protocol": "SSL", "ssl_certfile": "c.pem", "ssl_keyfile": "k.pem", "ssl_password": "p"},
    ],
)
def test_options_that_belong_together_are_accepted(options: dict[str, str]) -> None:
    """Each protocol with what it needs."""
    Connection("a:1", options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (USER, "has no effect with security_protocol PLAINTEXT, the default: set security_protocol to SASL_SSL"),
        ({"sasl_mechanism": "PLAIN", **USER}, "has no effect with security_protocol PLAINTEXT"),
        ({"security_protocol": "SSL", **USER}, "has no effect with security_protocol SSL: set"),
        ({"ssl_cafile": "ca.pem"}, "ssl_cafile has no effect with security_protocol PLAINTEXT.*set security_protocol"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **USER, "ssl_cafile": "ca.pem"},
            "ssl_cafile has no effect with security_protocol SASL_PLAINTEXT: set security_protocol to SSL or SASL_SSL",
        ),
        ({**SASL, **USER}, "needs sasl_mechanism"),
        ({**SASL, "sasl_mechanism": "PLAIN"}, "needs sasl_plain_username and sasl_plain_password"),
        ({**SASL, "sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "u"}, "needs sasl_plain_password"),
        ({**SASL, "sasl_mechanism": "PLAIN", "sasl_plain_username": "", "sasl_plain_password": "p"}, "username"),
        ({**SASL, "sasl_mechanism": "OAUTHBEARER"}, "needs a program that provides tokens"),
        ({**SASL, "sasl_mechanism": "DIGEST-MD5", **USER}, "must be one of PLAIN, SCRAM"),
        ({**SASL, "sasl_mechanism": "PLAIN", **USER, "sasl_kerberos_name": "k"}, "uses no sasl_kerberos_name"),
        ({"security_protocol": "SSL", "ssl_keyfile": "k.pem"}, "ssl_keyfile belongs to a certificate"),
        ({"security_protocol": "SSL", "ssl_password": "p"}, "ssl_password belongs to a certificate"),
        ({"security_protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
    ],
)
def test_contradictory_security_options_are_refused(options: dict[str, str], says: str) -> None:
    """The message names the options and what to set; it quotes no value of a secret."""
    with pytest.raises(OptionError, match=says):
        Connection("a:1", options)


def test_a_mechanism_whose_package_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is named; the library would fail in each connection."""
    monkeypatch.setattr("dedup_service.runtime.kafka.client.config.find_spec", lambda _: None)
    with pytest.raises(OptionError, match="pip install gssapi"):
        Connection("a:1", {**SASL, "sasl_mechanism": "GSSAPI"})


def test_a_mechanism_without_a_password_refuses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """User and password would not be used; Amazon's mechanism also needs TLS."""
    monkeypatch.setattr("dedup_service.runtime.kafka.client.config.find_spec", lambda _: object())
    with pytest.raises(OptionError, match="uses no sasl_plain_username"):
        Connection("a:1", {**SASL, "sasl_mechanism": "GSSAPI", **USER})
    with pytest.raises(OptionError, match="only with security_protocol SASL_SSL"):
        Connection("a:1", {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM"})
    Connection("a:1", {**SASL, "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka"})


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    """One file may hold both; where it holds the certificate alone, the key must be named."""
    both, alone = tmp_path / "both.pem", tmp_path / "alone.pem"
    both.write_text(KEY + CERTIFICATE)
    alone.write_text(CERTIFICATE)
    Connection("a:1", {"security_protocol": "SSL", "ssl_certfile": str(both)})
    Connection("a:1", {"security_protocol": "SSL", "ssl_certfile": str(alone), "ssl_keyfile": str(both)})
    with pytest.raises(OptionError, match="ssl_keyfile"):
        Connection("a:1", {"security_protocol": "SSL", "ssl_certfile": str(alone)})


def test_the_values_are_those_of_the_library() -> None:
    """Nothing is refused that the library can do."""
    assert set(ALLOWED["sasl_mechanism"]) == set(SASL_MECHANISMS)
    assert ALLOWED["client_dns_lookup"] == KafkaConnectionManager._VALID_DNS_LOOKUP_MODES
    assert set(ALLOWED) <= set(KafkaConsumer.DEFAULT_CONFIG)


def test_certificates_that_cannot_be_loaded_are_a_wrong_configuration(tmp_path: Path) -> None:
    """Not a broker that is away, for which a supervisor would start the process again and again."""
    empty = tmp_path / "ca.pem"
    empty.touch()
    for file in (empty, tmp_path / "none.pem"):
        options = {"security_protocol": "SSL", "ssl_cafile": str(file), "bootstrap_timeout_ms": "1"}
        with pytest.raises(ConfigurationError, match="ssl_cafile"):
            connect(KafkaConsumer, Connection("127.0.0.1:1", options))
