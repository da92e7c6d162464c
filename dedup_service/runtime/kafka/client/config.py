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

All options are checked when a `Connection` is made, alone (type, allowed values) and together (`check_security`).
An option that would have no effect is refused: somebody believes that it protects the connection.
Invariant: no secret appears in a repr or an error. So errors name options and never quote a value, and a repr
leaves out passwords, also those in addresses of proxies.

Which security options of a connection belong together: each must have an effect, and none may be missing.

The library ignores what does not fit: a password under PLAINTEXT is never sent, an authority without TLS is
never asked, and a SASL protocol without a mechanism fails in each connection, with an error that names
neither. An operator who gave such an option believes that it protects something, so it is refused, with what
to write instead.

Source: kafka-python 3.0.12, net/manager.py, net/transport.py, net/sasl; a test compares the values with the
library's own.

Java's properties format, read exactly as `java.util.Properties.load` reads it.

A file of client options is shared with Java's own tools, so each character must mean the same to both:

- A natural line ends with LF, CR or CR LF, and nothing else. It is a comment if its first character that is
  not white space is # or !; comments never continue.
- A line that ends with an odd number of backslashes continues; the white space that the next line begins
  with is dropped, and a # there is no comment.
- The name ends at the first =, : or white space without a backslash before it. White space around the
  separator is dropped, that at the end of the value is kept.
- Escapes: tab, line feed, carriage return and form feed as `t n r f`, UTF-16 units as `uXXXX`; a backslash
  before any other character only disappears.

White space is space, tab and form feed. One difference: where the text ends with a lone backslash, Java may
add an empty name; here it is a blank line. Why our own: a password read wrongly must be noticed, so each entry
needs its line number and whether it has a separator, and the packages for the format give neither. A test
compares with what Java made of the same texts.
Source: the API documentation of `java.util.Properties.load(Reader)`, Java 17.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.errors import OptionError

_BLANK = " \t\f"
_ENDS = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """A name and its value. line: where it begins, from 1. separated: a separator follows the name."""

    line: int
    name: str
    value: str
    separated: bool

    def __repr__(self) -> str:
        return f"PropertyLine({self.line}, {self.name!r}, …)"  # the value may be a password


class PropertiesError(ValueError):
    """A line has an escape that Java refuses, or half a character. `line`: its number, from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse(text: str) -> Iterator[PropertyLine]:
    r"""Yield the entries of a properties text in their order, repeated names included.

    Raises PropertiesError.
    >>> [(entry.name, entry.value) for entry in parse("a = 1\\\n   2\n# no\nb c\\u0021\\\\\nd=")]
    [('a', '12'), ('b', 'c!\\'), ('d', '')]
    """
    for line, content in _logical_lines(text):
        end = _end_of_name(content)
        rest = content[end:].lstrip(_BLANK)
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(_BLANK)
        yield PropertyLine(line, _unescaped(content[:end], line), _unescaped(rest, line), separated=end < len(content))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first natural line; no comments, no blank lines."""
    content, first, continues = "", 0, False
    for number, natural in enumerate((line.lstrip(_BLANK) for line in _ENDS.split(text)), 1):
        if not continues:
            if not natural or natural[0] in "#!":
                continue
            content, first = "", number
        ends_escaped = (len(natural) - len(natural.rstrip("\\"))) % 2 == 1
        content += natural[:-1] if ends_escaped else natural
        continues = ends_escaped and bool(content)  # Java, too, takes a lone backslash for a blank line
        if content and not continues:
            yield first, content
    if continues:
        yield first, content


def _end_of_name(content: str) -> int:
    """Return where the name ends: the first separator without a backslash before it."""
    escaped = False
    for at, character in enumerate(content):
        if not escaped and (character in "=:" or character in _BLANK):
            return at
        escaped = character == "\\" and not escaped
    return len(content)


def _unescaped(text: str, line: int) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] == "u":
            raise PropertiesError(line, r"\u must be followed by four hexadecimal digits")
        return _CONTROL.get(found[2], found[2])

    units = _ESCAPE.sub(character, text)
    try:
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise PropertiesError(line, r"a \u escape is half a character: write both halves of the pair") from None


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
    """Return the options of a client properties file, in Java's own format (see `parse`), as UTF-8.

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
