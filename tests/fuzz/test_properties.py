"""Files of client options: any bytes are options or one clear error, and no secret is quoted."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import ALIASES, TYPES, Connection, read_properties
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated

SECRET = "Hunter2Hunter2"
OPTIONS = st.sampled_from(sorted({*TYPES, *ALIASES, *(name.replace("_", ".") for name in TYPES), "sasl.jaas.config"}))
VALUES = st.sampled_from(
    ["SASL_SSL", "PLAIN", "true", "10000", "https", "", "PEM", "http://user:pw@proxy:1", "SCRAM-SHA-512", "None", "a b"]
)
PIECES = (
    *(b"=", b":", b" ", b"\\", b"\\\n", b"\\\\\n", b"\r", b"\r\n", b"#", b"!", b"\t", b"\f", b"\\u00e9"),
    *(b"\\u", b"\\ud800"),
    *(b"\xff", b"\xef\xbb\xbf", b"\0", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c", b'"', b";", b"sasl.password="),
)
LINES = st.builds(lambda name, value: f"{name}={value}", OPTIONS, VALUES) | st.just(f"sasl.password={SECRET}")
FILES = st.one_of(
    mutated(st.lists(LINES, max_size=5).map("\n".join).map(str.encode), PIECES),
    st.lists(st.sampled_from(PIECES)).map(b"".join),
    st.binary(),
)


def escaped(text: str) -> str:
    """Return a name or value as Java's `Properties.store` writes it."""
    units = text.encode("utf-16-be")
    pairs = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(unit) if chr(unit).isascii() and chr(unit).isalnum() else f"\\u{unit:04x}" for unit in pairs)


def check(content: bytes, path: Path) -> None:
    """What must hold for any file."""
    path.write_bytes(content)
    with within(content):
        try:
            options = read_properties(path)
            connection = Connection("localhost:9092", options)
            shown = repr(connection)
            connection.configs()
        except ConfigurationError as error:
            shown = str(error)
    as_value = f"sasl.password={SECRET}".encode()
    if content.count(SECRET.encode()) == sum(line.startswith(as_value) for line in content.split(b"\n")):
        assert SECRET not in shown, "a name may be quoted, a value may not"


@fuzzed(40)
@given(content=FILES)
def test_any_file_is_options_or_a_clear_error(content: bytes, tmp_path: Path) -> None:
    """Only ConfigurationError, and no value of a password in an error or a repr."""
    check(content, tmp_path / "client.properties")


@fuzzed(20)
@given(options=st.dictionaries(st.text(min_size=1, max_size=8).filter(str.strip), st.text(max_size=12), max_size=4))
def test_what_java_writes_is_read(options: dict[str, str], tmp_path: Path) -> None:
    """Names and values come back, whatever characters they have."""
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{escaped(name)}={escaped(value)}\n" for name, value in options.items()), "ascii")
    plain = {name.strip().replace(".", "_") for name in options}
    if len(plain) == len(options):
        assert read_properties(path) == options
