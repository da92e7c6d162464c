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

All options are checked when a `Connection` is made, alone (type, allowed values) and together (`security`).
An option that would have no effect is refused: somebody believes that it protects the connection.
Invariant: no secret appears in a repr or an error. So errors name options and never quote a value, and a repr
leaves out passwords, also those in addresses of proxies.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.errors import OptionError
from dedup_service.runtime.kafka.client.properties import PropertiesError, parse
from dedup_service.runtime.kafka.client.security import ALLOWED, check_security

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
_SECRET = ("password", "jaas", "secret", "token")
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}

_JAAS, _ENDPOINT = "sasl_jaas_config", "ssl_endpoint_identification_algorithm"
_IN_JAAS = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_STORE_TYPES = ("ssl_truststore_type", "ssl_keystore_type")
_ONLY_JAVA = ("ssl_truststore_password", "ssl_keystore_password")
_USER_IN_ADDRESS = re.compile(r"//.*@", re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]+)(?::([0-9]{1,5}))?")
_PROXIES = ("http", "socks5", "socks5h")


@dataclass(frozen=True, slots=True, repr=False)
class Connection:
    """The addresses of the brokers, and the client options to reach them.

    bootstrap: `host:port`, several separated by commas. options: see the module; OptionError for a wrong
    one, and for those that contradict each other.
    """

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_addresses(self.bootstrap)
        check_security(self._typed())

    def configs(self, **more: Any) -> dict[str, Any]:
        """Return the keyword arguments of any kafka-python client.

        `more` overrides options, options override defaults.
        """
        return {"bootstrap_servers": self.servers, **DEFAULTS, **self._typed(), **more}

    @property
    def servers(self) -> list[str]:
        """The addresses as a list."""
        return [server.strip() for server in self.bootstrap.split(",")]

    def redacted(self, text: str) -> str:
        """Return `text`, which may come from the library or the system, without any secret of ours."""
        typed = self._typed()
        secrets = [str(value) for name, value in typed.items() if _is_secret(name)]
        secrets += _parts_of_user(str(typed.get("proxy_url", "")))
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "…")
        return text

    def _typed(self) -> dict[str, Any]:
        plain = _from_java(_distinct(self.options, {name: _plain(name) for name in self.options}))
        return {name: _value(name, value) for name, value in _distinct(plain, {n: _known(n) for n in plain}).items()}

    def __repr__(self) -> str:
        shown = {name: _shown(_plain(name), str(value)) for name, value in self.options.items()}
        return f"Connection({self.bootstrap!r}, {shown!r})"


def read_properties(path: Path) -> dict[str, str]:
    """Return the options of a client properties file, in Java's own format (see `properties`), as UTF-8.

    Raises ConfigurationError if the file cannot be read, if a line has a name alone or an invalid escape,
    and if a name is given twice.
    """
    try:
        entries = list(parse(path.read_bytes().decode("utf-8")))
    except OSError as error:
        raise ConfigurationError(f"cannot read the client options in {path}: {error.strerror}") from None
    except UnicodeDecodeError:  # its message quotes a byte of what may be a password
        raise ConfigurationError(f"{path} is not UTF-8: save it as UTF-8, or write such letters as \\uXXXX") from None
    except PropertiesError as error:
        raise ConfigurationError(f"{path}, line {error.line}: {error}") from None
    lines: dict[str, int] = {}
    for entry in entries:
        if not entry.separated or not entry.name:
            raise ConfigurationError(f"{path}, line {entry.line} is not name=value; correct it or begin it with #")
        if (first := lines.setdefault(_plain(entry.name), entry.line)) != entry.line:
            raise ConfigurationError(f"{path} has {entry.name} in lines {first} and {entry.line}: remove one of them")
    return {entry.name: entry.value for entry in entries}


def _plain(name: str) -> str:
    return str(name).strip().replace(".", "_")


def _canonical(name: str) -> str:
    return ALIASES.get(_plain(name), _plain(name))


def _distinct(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the options under their new `names`; OptionError if two of one name differ."""
    given: dict[str, list[str]] = defaultdict(list)
    for name, new in names.items():
        given[new].append(name)
    for olds in given.values():
        if len({str(options[old]) for old in olds}) > 1:
            raise OptionError(f"client options {' and '.join(olds)} mean the same, and differ: give one of them")
    return {new: options[olds[0]] for new, olds in given.items()}


def _from_java(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` (names with underscores) with the special ones of Java replaced by kafka-python's.

    OptionError if one cannot be replaced, or says something else than another one.
    """
    left = dict(options)
    for name in _STORE_TYPES:
        if left.pop(name, "PEM").strip().upper() != "PEM":
            raise OptionError(f"client option {name} must be PEM, the one format that can be read: export the store")
    for name in _ONLY_JAVA:
        if left.pop(name, ""):
            raise OptionError(f"client option {name} belongs to a Java store: export the store as a PEM file")
    if _JAAS in left:
        _replace(left, _JAAS, _credentials(left[_JAAS]))
    if _ENDPOINT in left:
        kind = left[_ENDPOINT].strip().lower()
        if kind not in {"", "none", "https"}:  # none: librdkafka's word for the empty text of Java
            raise OptionError(f"client option {_ENDPOINT} must be https, or empty for no check of the host name")
        _replace(left, _ENDPOINT, {"ssl_check_hostname": str(kind == "https").lower()})
    return left


def _replace(options: dict[str, str], special: str, values: Mapping[str, str]) -> None:
    """Replace the option `special` by what it means."""
    del options[special]
    for given, value in list(options.items()):
        name = ALIASES.get(given, given)
        if name in values and _value(name, value) != _value(name, values[name]):
            raise OptionError(f"client options {special} and {given} differ: give one of them")
    options.update({name: value for name, value in values.items() if name not in map(_canonical, options)})


def _credentials(jaas: str) -> dict[str, str]:
    values = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _IN_JAAS.findall(jaas)}
    if set(values) != {"username", "password"}:
        raise OptionError("client option sasl_jaas_config has no username and password in double quotes: add both")
    return {"sasl_plain_username": values["username"], "sasl_plain_password": values["password"]}


def _check_addresses(bootstrap: str) -> None:
    if "@" in bootstrap or "//" in bootstrap:
        raise ConfigurationError(
            "an address of brokers is host:port, without a scheme and without a user: give user and password as the "
            "client options sasl.username and sasl.password"
        )
    for server in bootstrap.split(","):
        found = _HOST_AND_PORT.fullmatch(server.strip())
        if not (found and (found[2] is None or 0 < int(found[2]) < 1 << 16)):
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


def _value(name: str, text: Any) -> Any:
    kind, text = TYPES[name], str(text)  # a caller in Python may pass it typed
    if _is_secret(name):
        return text  # white space at its end belongs to it
    text = text.strip()
    if kind is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise OptionError(f"client option {name} must be true or false")
    if kind is int:
        if re.fullmatch(r"-?[0-9]{1,18}", text):
            return int(text)
        raise OptionError(f"client option {name} must be a whole number")
    if name in ALLOWED:
        return _allowed(name, text)
    if name == "proxy_url":
        _check_proxy(text)
    return text


def _allowed(name: str, text: str) -> str:
    for value in ALLOWED[name]:
        if value.lower() == text.lower():
            return value
    raise OptionError(f"client option {name} must be one of {', '.join(ALLOWED[name])}")


def _check_proxy(url: str) -> None:
    try:
        parts = urlsplit(url)
        complete = parts.scheme in _PROXIES and bool(parts.hostname) and parts.port is not None
    except ValueError:
        complete = False
    if not complete:
        raise OptionError(
            f"client option proxy_url must be SCHEME://HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT, with one of the "
            f"schemes {', '.join(_PROXIES)}; write special characters of a password as %XX"
        )


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)


def _shown(name: str, value: str) -> str:
    return "…" if _is_secret(name) else _USER_IN_ADDRESS.sub("//…@", value)


def _parts_of_user(url: str) -> list[str]:
    """Return user and password of a URL, alone and together."""
    user, at, _ = url.partition("//")[2].rpartition("@")
    return [user, *user.split(":", 1)] if at else []
