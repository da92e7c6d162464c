"""`TWINSIEVE_*` settings are read once, and invalid ones are refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.interfaces.scrapy.settings import ItemFields, NearDuplicateSettings
from dedup_service.runtime.kafka.client.config import Connection, read_properties
from dedup_service.runtime.resources import SpaceOptions


def read(**values: object) -> NearDuplicateSettings:
    return NearDuplicateSettings.from_settings(Settings(values))


def test_without_settings_pages_are_flagged_and_items_of_duplicates_dropped() -> None:
    """A project that adds one line gets flags on responses, no items of duplicates, and no files."""
    settings = read()
    assert (settings.action, settings.item_text, settings.state, settings.rule) == (Action.FLAG, None, None, None)
    assert settings.items_of == set(VerdictKind) - {VerdictKind.DUPLICATE}


def test_strings_from_a_command_line_equal_values() -> None:
    """`-s TWINSIEVE_PROCESSES=3` means what TWINSIEVE_PROCESSES = 3 means."""
    from_strings = read(TWINSIEVE_PROCESSES="3", TWINSIEVE_DEADLINE_S="2.5", TWINSIEVE_KEEP_PAGE="True")
    assert from_strings == read(TWINSIEVE_PROCESSES=3, TWINSIEVE_DEADLINE_S=2.5, TWINSIEVE_KEEP_PAGE=True)
    assert from_strings.processes == 3


def test_a_profile_takes_the_values_of_the_option() -> None:
    """Names, names with a radius, and a weight."""
    assert read(TWINSIEVE_PROFILE="words").rule == rule_for("words")
    assert read(TWINSIEVE_PROFILE="balanced:2").rule == rule_for(k=2)
    assert read(TWINSIEVE_PROFILE="precise").rule == PROFILES["precise"]


def test_a_space_is_a_scheme_or_a_file(tmp_path: Path) -> None:
    """A table that a setting names replaces that of the file."""
    file = tmp_path / "space.toml"
    file.write_text('scheme = "tf"\nidf = "a"\nuser_words = "b"\n')
    named = read(TWINSIEVE_SPACE=str(file), TWINSIEVE_IDF="c").space
    assert named == SpaceOptions(scheme="tf", idf="c", user_words=str(tmp_path / "b"))
    assert read(TWINSIEVE_SPACE="tf").space == SpaceOptions(scheme="tf")


def test_a_job_remembers_its_pages_beside_its_requests(tmp_path: Path) -> None:
    """With JOBDIR a resumed crawl knows what the first part kept; TWINSIEVE_STATE takes precedence."""
    job = str(tmp_path / "job")
    assert read(JOBDIR=job).state == tmp_path / "job" / "twinsieve"
    assert read(JOBDIR=job, TWINSIEVE_STATE="elsewhere").state == Path("elsewhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TWINSIEVE_ACTION", "discard"),
        ("TWINSIEVE_ITEMS_OF", "unique, new"),
        ("TWINSIEVE_ITEMS_OF", ""),
        ("TWINSIEVE_ITEMS_OF", 3),
        ("TWINSIEVE_ITEMS_OF", "-undecided"),
        ("TWINSIEVE_ITEMS_OF", "unique,-updated"),
        ("TWINSIEVE_ITEM_TEXT", 3),
        ("TWINSIEVE_ITEM_TEXT", {"txt": "body"}),
        ("TWINSIEVE_ITEM_TEXT", {"title": "head"}),
        ("TWINSIEVE_ITEM_TEXT", '{"text": body}'),
        ("TWINSIEVE_PROFILE", "words:8"),
        ("TWINSIEVE_MAX_MEMORY", "8 gigs"),
        ("TWINSIEVE_PROFILE", "title"),
        ("TWINSIEVE_PROCESSES", 0),
        ("TWINSIEVE_PROCESSES", True),
        ("TWINSIEVE_PROCESSES", "many"),
        ("TWINSIEVE_KEEP", "90m"),
        ("TWINSIEVE_KEEP", 90),
        ("TWINSIEVE_DEADLINE_S", "soon"),
        ("TWINSIEVE_DEADLINE_S", 0),
        ("TWINSIEVE_DEADLINE_S", "inf"),
        ("TWINSIEVE_DEADLINE_S", "later"),
        ("TWINSIEVE_KEEP_PAGE", "maybe"),
        ("TWINSIEVE_KEEP_PAGE", {}),
        ("TWINSIEVE_DEADLINE_S", True),
        ("TWINSIEVE_STATE", True),
        ("TWINSIEVE_PROFILE", 3),
        ("TWINSIEVE_SPACE", 3),
        ("TWINSIEVE_SPACE", "nothing"),
        ("TWINSIEVE_IDF", True),
        ("TWINSIEVE_BASES", 5),
    ],
)
def test_an_invalid_value_is_refused(name: str, value: object) -> None:
    """The crawl does not start; the message names the setting and shows the value."""
    with pytest.raises(ConfigurationError, match=f"{name}.*{re.escape(str(value))}"):
        read(**{name: value})


def test_a_token_of_digits_is_a_token() -> None:
    """In Python it may be a number, and a command line has no other form for it."""
    assert read(TWINSIEVE_DASHBOARD_TOKEN=1234567890123456).dashboard_token == "1234567890123456"


@pytest.mark.parametrize("value", ["unique,updated", " updated, unique ", ["unique", "updated"]])
def test_verdicts_whose_items_go_on_in_any_form(value: object) -> None:
    """Text with commas, or a list; `undecided` is among them unless it is ruled out."""
    named = {VerdictKind.UNIQUE, VerdictKind.UPDATED}
    assert read(TWINSIEVE_ITEMS_OF=value).items_of == named | {VerdictKind.UNDECIDED}
    parts = value if isinstance(value, list) else [value]
    assert read(TWINSIEVE_ITEMS_OF=",".join([*map(str, parts), "-undecided"])).items_of == named


def test_the_fields_of_an_item_in_any_form() -> None:
    """The name of its text, or names in a dict, which is JSON on a command line."""
    assert read(TWINSIEVE_ITEM_TEXT="body").item_text == ItemFields("body")
    names = {"text": "body", "title": "head", "url": "link"}
    for value in (names, json.dumps(names)):
        assert read(TWINSIEVE_ITEM_TEXT=value).item_text == ItemFields("body", "head", "link")


def test_what_happens_to_responses_is_no_question_where_items_are_judged() -> None:
    """Responses have no verdicts then; the setting would have no effect."""
    with pytest.raises(ConfigurationError, match=r"TWINSIEVE_ITEM_TEXT=body .* TWINSIEVE_ACTION .*remove one"):
        read(TWINSIEVE_ITEM_TEXT="body", TWINSIEVE_ACTION="flag")


def test_few_pages_to_keep_need_their_unit() -> None:
    """A number alone may have been meant as days."""
    with pytest.raises(ConfigurationError, match='give "90d" for days, or "90 pages"'):
        read(TWINSIEVE_KEEP="90")
    assert read(TWINSIEVE_KEEP="90 pages").keep == Keep(max_pages=90)
    assert read(TWINSIEVE_KEEP=1_000_000).keep == Keep(max_pages=1_000_000)


def test_a_misspelt_setting_is_refused() -> None:
    """The message names the setting that was probably meant."""
    with pytest.raises(ConfigurationError, match="did you mean TWINSIEVE_ACTION"):
        read(TWINSIEVE_ACTIONS="drop")


def test_a_setting_that_is_gone_is_refused() -> None:
    """It would have no effect, and nobody would know."""
    with pytest.raises(ConfigurationError, match="there is no setting TWINSIEVE_SEGMENTER"):
        read(TWINSIEVE_SEGMENTER="jieba")


BOOTSTRAP = {"TWINSIEVE_KAFKA_BOOTSTRAP": "a:9092"}


def test_without_a_broker_nothing_is_published() -> None:
    """One setting switches publishing on; the others have defaults."""
    assert read().kafka is None
    kafka = read(**BOOTSTRAP).kafka
    assert kafka is not None
    assert (kafka.connection.bootstrap, kafka.prefix, kafka.buffer_bytes) == ("a:9092", "", 32 * 2**20)


def test_brokers_and_the_options_of_their_client(tmp_path: Path) -> None:
    """A list or text with commas; the options are in a file, and a password is never shown."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=crawler\nsasl.password=a,b=c\n")
    for brokers in (["a:9092", "b:9092"], "a:9092,b:9092"):
        kafka = read(TWINSIEVE_KAFKA_BOOTSTRAP=brokers, TWINSIEVE_KAFKA_PROPERTIES=str(file)).kafka
        assert kafka is not None
        assert kafka.connection == Connection("a:9092,b:9092", read_properties(file))
        assert "a,b=c" not in repr(kafka)


def test_a_wrong_address_and_a_wrong_client_option_name_their_setting(tmp_path: Path) -> None:
    """The file is named by its setting, also where it can be read and has an option that there is not."""
    file = tmp_path / "client.properties"
    with pytest.raises(ConfigurationError, match=r"^TWINSIEVE_KAFKA_BOOTSTRAP=a:b: .* is not an address"):
        read(TWINSIEVE_KAFKA_BOOTSTRAP="a:b")
    for text, problem in ((None, "cannot read"), ("no.such=1\n", "unknown client option")):
        if text is not None:
            file.write_text(text)
        with pytest.raises(ConfigurationError, match=f"^TWINSIEVE_KAFKA_PROPERTIES={file}: {problem}"):
            read(**BOOTSTRAP, TWINSIEVE_KAFKA_PROPERTIES=str(file))


@pytest.mark.parametrize("name", ["STATE", "ACTION", "ITEMS_OF", "ITEM_TEXT", "SPACE", "PROFILE", "KEEP", "DEADLINE_S"])
def test_settings_for_verdicts_exclude_publishing(name: str) -> None:
    """A setting for verdicts in the crawl is refused next to a broker, and the message says what to do."""
    with pytest.raises(ConfigurationError, match=f"remove TWINSIEVE_{name} .the service"):
        read(**BOOTSTRAP, **{f"TWINSIEVE_{name}": "1"})


@pytest.mark.parametrize("name", ["PREFIX", "PROPERTIES", "BUFFER_BYTES", "CLOSE_TIMEOUT_S"])
def test_a_setting_for_publishing_needs_a_broker(name: str) -> None:
    """Otherwise a crawl would silently publish nothing."""
    with pytest.raises(ConfigurationError, match="has no effect without TWINSIEVE_KAFKA_BOOTSTRAP"):
        read(**{f"TWINSIEVE_KAFKA_{name}": "5"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BOOTSTRAP", "nowhere:port", "nowhere:port"),
        ("PROPERTIES", "nowhere.properties", "nowhere.properties"),
        ("BUFFER_BYTES", 0, "integer"),
        ("BUFFER_BYTES", "some", "integer"),
        ("CLOSE_TIMEOUT_S", -1, "above 0"),
        ("TOPIC", "pages", "there is no setting TWINSIEVE_KAFKA_TOPIC"),
    ],
)
def test_an_invalid_publishing_setting_is_refused(name: str, value: object, message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ConfigurationError, match=message):
        read(**{**BOOTSTRAP, f"TWINSIEVE_KAFKA_{name}": value})


@pytest.mark.parametrize("value", [1000, "1000", "1000, 90d", ["90d", 1000], ("90d", "1000"), Keep.parse("1000,90d")])
def test_bounds_of_expiry(value: object) -> None:
    """A number, text, both bounds in a list, or a `Keep`; without the setting those of the state stay."""
    keep = read(TWINSIEVE_KEEP=value).keep
    assert keep is not None
    assert keep.max_pages == 1000
    assert keep.max_age_minutes == (None if str(value) == "1000" else 129_600)
    assert read().keep is None


@pytest.mark.parametrize("value", [["a", "s3://b/c"], "a, s3://b/c,", (Path("a"), "s3://b/c")])
def test_bases_in_any_form(value: Any) -> None:
    """A list of folders and addresses, or text with commas; without the setting there are none."""
    assert read(TWINSIEVE_BASES=value).bases == ("a", "s3://b/c")
    assert read().bases == ()
