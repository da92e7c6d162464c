"""How to reach the brokers: addresses, and the client options that an operator already has in a file.

An operator may set options of the connection only, which mean the same to producer, consumer and admin
client. What decides over exactly-once (acks, isolation, offsets …) is refused. A test compares the list with
the library's own. Names may be kafka-python's (`security_protocol`), Java's (`security.protocol`) or
librdkafka's (`ssl.ca.location`). Values are text, as in files and on command lines, and get their types
here.

Options of Java that differ in more than the name:
- `sasl.jaas.config` holds user and password: `…ScramLoginModule required username="a" password="b";`
- certificate stores must be PEM files (`ssl.truststore.type=PEM`); JKS and PKCS12 are for Java alone.
- an empty `ssl.endpoint.identification.algorithm` turns the check of the host name off.

Invariant: no password appears in a repr or an error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.errors import OptionError

__all__ = ["ALIASES", "OURS", "TYPES", "Connection", "read_properties"]

TYPES: Mapping[str, type] = {
    "client_dns_lookup": str,
    "client_id": str,
    "connections_max_idle_ms": int,
    "metadata_max_age_ms": int,
    "proxy_url": str,
    "receive_buffer_bytes": int,
    "reconnect_backoff_max_ms": int,
    "reconnect_backoff_ms": int,
    "request_timeout_ms": int,
    "bootstrap_timeout_ms": int,
    "sasl_kerberos_domain_name": str,
    "sasl_kerberos_name": str,
    "sasl_kerberos_service_name": str,
    "sasl_mechanism": str,
    "sasl_plain_password": str,
    "sasl_plain_username": str,
    "security_protocol": str,
    "send_buffer_bytes": int,
    "ssl_cafile": str,
    "ssl_certfile": str,
    "ssl_check_hostname": bool,
    "ssl_crlfile": str,
    "ssl_keyfile": str,
    "ssl_password": str,
}
"""The options that an operator may set, and the type of each."""

ALIASES: Mapping[str, str] = {
    "sasl_mechanisms": "sasl_mechanism",
    "sasl_password": "sasl_plain_password",
    "sasl_username": "sasl_plain_username",
    "ssl_ca_location": "ssl_cafile",
    "ssl_certificate_location": "ssl_certfile",
    "ssl_crl_location": "ssl_crlfile",
    "ssl_key_location": "ssl_keyfile",
    "ssl_key_password": "ssl_password",
    "ssl_keystore_location": "ssl_certfile",
    "ssl_truststore_location": "ssl_cafile",
}
"""Names of Java and librdkafka, with underscores for dots → names of kafka-python."""

OURS = frozenset(
    {
        "acks",
        "allow_auto_create_topics",
        "auto_offset_reset",
        "batch_size",
        "bootstrap_servers",
        "compression_type",
        "delivery_timeout_ms",
        "enable_auto_commit",
        "enable_idempotence",
        "fetch_max_bytes",
        "fetch_max_wait_ms",
        "fetch_min_bytes",
        "group_id",
        "group_instance_id",
        "heartbeat_interval_ms",
        "isolation_level",
        "linger_ms",
        "max_in_flight_requests_per_connection",
        "max_partition_fetch_bytes",
        "max_poll_interval_ms",
        "max_poll_records",
        "max_request_size",
        "metrics_enabled",
        "partition_assignment_strategy",
        "retries",
        "retry_backoff_ms",
        "session_timeout_ms",
        "transaction_timeout_ms",
        "transactional_id",
    }
)
"""Options that the service sets itself; listed so that the error can say so."""

DEFAULTS: Mapping[str, Any] = {
    "client_id": "twinsieve",
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,  # the library's default, 30 s, is what a broker's restart would cost at worst
    "request_timeout_ms": 10_000,  # detects a frozen broker; a dead one is detected by its connection
    "bootstrap_timeout_ms": 10_000,
}
_SECRET = ("password", "jaas")
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}

_JAAS, _ENDPOINT = "sasl_jaas_config", "ssl_endpoint_identification_algorithm"
_IN_JAAS = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_STORE_TYPES = ("ssl_truststore_type", "ssl_keystore_type")
_ONLY_JAVA = ("ssl_truststore_password", "ssl_keystore_password")


@dataclass(frozen=True, slots=True, repr=False)
class Connection:
    """The addresses of the brokers, and the client options to reach them.

    bootstrap: `host:port`, several separated by commas. options: see the module; OptionError for a wrong
    one.
    """

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_addresses(self.bootstrap)
        self._typed()

    def configs(self, **more: Any) -> dict[str, Any]:
        """Return the keyword arguments of any kafka-python client.

        `more` overrides options, options override defaults.
        """
        return {"bootstrap_servers": self.servers, **DEFAULTS, **self._typed(), **more}

    @property
    def servers(self) -> list[str]:
        """The addresses as a list."""
        return [server.strip() for server in self.bootstrap.split(",")]

    def _typed(self) -> dict[str, Any]:
        plain = _from_java({name.strip().replace(".", "_"): value for name, value in self.options.items()})
        return {_known(name): _value(_known(name), value) for name, value in plain.items()}

    def __repr__(self) -> str:
        shown = {name: "…" if _is_secret(name) else value for name, value in self.options.items()}
        return f"Connection({self.bootstrap!r}, {shown!r})"


def read_properties(path: Path) -> dict[str, str]:
    """Return the options of a client properties file: lines `name=value` or `name: value`.

    # or ! begins a comment. Raises ConfigurationError if the file cannot be read or a line is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the client options in {path}: {error}") from None
    options = {}
    for number, line in _logical_lines(text):
        name, separator, value = _split(line)
        if not separator:
            raise ConfigurationError(f"{path}, line {number} is not name=value; correct it or begin it with #")
        options[name] = value
    return options


def _from_java(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` (names with underscores) with the special ones of Java replaced by kafka-python's.

    OptionError if one cannot be replaced.
    """
    left = dict(options)
    for name in _STORE_TYPES:
        kind = left.pop(name, "PEM")
        if kind.upper() != "PEM":
            raise OptionError(f"client option {name} is {kind}: only PEM files can be read; export the store as PEM")
    for name in _ONLY_JAVA:
        if left.pop(name, ""):
            raise OptionError(f"client option {name} belongs to a Java store: export the store as a PEM file")
    if _JAAS in left:
        left = {**_credentials(left.pop(_JAAS)), **left}
    if _ENDPOINT in left:
        left = {"ssl_check_hostname": str(bool(left.pop(_ENDPOINT))), **left}
    return left


def _credentials(jaas: str) -> dict[str, str]:
    values = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _IN_JAAS.findall(jaas)}
    if set(values) != {"username", "password"}:
        raise OptionError("client option sasl_jaas_config has no username and password in double quotes: add both")
    return {"sasl_plain_username": values["username"], "sasl_plain_password": values["password"]}


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Join lines that end in a backslash, as Java's format does; leave out comments and empty lines."""
    lines: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if begun is None and (not line or line[0] in "#!"):
            continue
        first, before = begun or (number, "")
        if line.endswith("\\"):
            begun = first, before + line[:-1]
        else:
            lines.append((first, before + line))
            begun = None
    return [*lines, begun] if begun else lines


def _split(line: str) -> tuple[str, str, str]:
    separators = [at for at in (line.find("="), line.find(":")) if at > 0]
    if not separators:
        return line, "", ""
    at = min(separators)
    return line[:at].strip(), line[at], line[at + 1 :].strip()


def _check_addresses(bootstrap: str) -> None:
    for server in bootstrap.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (server.strip() and (not colon or (host and port.isdigit() and 0 < int(port) < 1 << 16))):
            raise ConfigurationError(
                f"{bootstrap!r} is not an address of brokers: give host:port, several separated by commas"
            )


def _known(name: str) -> str:
    name = ALIASES.get(name, name)
    if name in TYPES:
        return name
    if name in OURS:
        raise OptionError(f"option {name} is not an option of the connection: the service sets it itself; leave it out")
    close = get_close_matches(name, [*TYPES, *ALIASES], n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(TYPES))}"
    raise OptionError(f"unknown client option {name}: {hint}")


def _value(name: str, text: str) -> Any:
    kind, text = TYPES[name], str(text)  # a caller in Python may pass it typed
    if kind is bool:
        if text.strip().lower() in _TRUE | _FALSE:
            return text.strip().lower() in _TRUE
        raise OptionError(f"client option {name} must be true or false, not {text!r}")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"client option {name} must be a whole number, not {text!r}") from None
    return text


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)
