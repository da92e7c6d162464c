"""Which security options of a connection belong together: each must have an effect, and none may be missing.

The library ignores what does not fit: a password under PLAINTEXT is never sent, an authority without TLS is
never asked, and a SASL protocol without a mechanism fails in each connection, with an error that names
neither. An operator who gave such an option believes that it protects something, so it is refused, with what
to write instead.

Source: kafka-python 3.0.12, net/manager.py, net/transport.py, net/sasl; a test compares the values with the
library's own.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dedup_service.runtime.kafka.client.errors import OptionError

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "client_dns_lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "sasl_mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM", "OAUTHBEARER"),
    "security_protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}
"""The values of each enumerated option, as the library spells them."""

_USER, _PASSWORD = "sasl_plain_username", "sasl_plain_password"
_WITH_PASSWORD = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
_LONGEST_PEM_BYTES = 1 << 20


def check_security(options: Mapping[str, Any]) -> None:
    """Raise OptionError for the first contradiction. options: typed, under the library's names."""
    for problem in _problems(options):
        raise OptionError(problem)


def _problems(options: Mapping[str, Any]) -> Iterator[str]:
    protocol = options.get("security_protocol", "PLAINTEXT")
    yield from _without_effect(options, protocol, "sasl_", ("SASL_SSL", "SASL_PLAINTEXT"))
    yield from _without_effect(options, protocol, "ssl_", ("SSL", "SASL_SSL"))
    if protocol.startswith("SASL_"):
        yield from _sasl_problems(options, protocol)
    yield from _certificate_problems(options)


def _without_effect(options: Mapping[str, Any], protocol: str, prefix: str, fitting: tuple[str, ...]) -> Iterator[str]:
    names = sorted(name for name in options if name.startswith(prefix))
    if names and protocol not in fitting:
        default = "" if "security_protocol" in options else ", the default"
        yield (
            f"client option {names[0]} has no effect with security_protocol {protocol}{default}: "
            f"set security_protocol to {' or '.join(fitting)}, or remove {', '.join(names)}"
        )


def _sasl_problems(options: Mapping[str, Any], protocol: str) -> Iterator[str]:
    mechanism = options.get("sasl_mechanism")
    if mechanism is None:
        usable = ", ".join(name for name in ALLOWED["sasl_mechanism"] if name != "OAUTHBEARER")
        yield f"security_protocol {protocol} needs sasl_mechanism: set it to the brokers' own, one of {usable}"
        return
    if mechanism == "OAUTHBEARER":
        yield (
            "sasl_mechanism OAUTHBEARER needs a program that provides tokens, which no client option can name: "
            "use SCRAM-SHA-512, or another one that the brokers have"
        )
    if mechanism in _PACKAGES and find_spec(_PACKAGES[mechanism]) is None:
        yield f"sasl_mechanism {mechanism} needs a package: pip install {_PACKAGES[mechanism]}"
    if mechanism == "AWS_MSK_IAM" and protocol != "SASL_SSL":
        yield f"sasl_mechanism {mechanism} works only with security_protocol SASL_SSL: set it"
    yield from _credential_problems(options, mechanism)


def _credential_problems(options: Mapping[str, Any], mechanism: str) -> Iterator[str]:
    names = (_USER, _PASSWORD)
    if mechanism in _WITH_PASSWORD and (missing := [name for name in names if not options.get(name)]):
        yield f"sasl_mechanism {mechanism} needs {' and '.join(missing)}: set user and password"
    if mechanism not in _WITH_PASSWORD and (given := [name for name in names if name in options]):
        yield f"sasl_mechanism {mechanism} uses no {' and '.join(given)}: remove it, or choose another mechanism"
    kerberos = sorted(name for name in options if name.startswith("sasl_kerberos_"))
    if mechanism != "GSSAPI" and kerberos:
        yield f"sasl_mechanism {mechanism} uses no {', '.join(kerberos)}: remove it, or choose GSSAPI"


def _certificate_problems(options: Mapping[str, Any]) -> Iterator[str]:
    certificate = options.get("ssl_certfile")
    for name in ("ssl_keyfile", "ssl_password"):
        if options.get(name) and not certificate:
            yield f"client option {name} belongs to a certificate: give ssl_certfile, too, or remove {name}"
    if certificate and not options.get("ssl_keyfile") and not _may_have_key(Path(certificate)):
        yield "the file in ssl_certfile has no private key: give the file that has it as ssl_keyfile"


def _may_have_key(certificate: Path) -> bool:
    """Whether the PEM file has a private key; True if it cannot be read, which connecting reports."""
    try:
        with certificate.open("rb") as file:
            return b"PRIVATE KEY-----" in file.read(_LONGEST_PEM_BYTES)
    except OSError:
        return True
