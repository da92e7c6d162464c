"""`NEARDUP_*` settings are read once, and what cannot be understood is said."""

import json
from pathlib import Path

import pytest
from scrapy.settings import Settings

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.profiles import PROFILES, rule_for
from dedup_service.core.verdict import Action
from dedup_service.faces.scrapy.settings import ItemPolicy, NearDuplicateSettings


def read(**values: object) -> NearDuplicateSettings:
    return NearDuplicateSettings.from_settings(Settings(values))


def test_without_settings_pages_are_flagged_and_items_of_duplicates_dropped() -> None:
    """A project that adds one line gets flags on responses, no duplicate items, and no files on its disk."""
    settings = read()
    assert (settings.action, settings.items, settings.state, settings.rule) == (
        Action.FLAG,
        ItemPolicy.DROP,
        None,
        None,
    )


def test_strings_of_a_command_line_are_as_good_as_values() -> None:
    """`-s NEARDUP_PROCESSES=3` means what NEARDUP_PROCESSES = 3 means."""
    written = read(NEARDUP_PROCESSES="3", NEARDUP_TIMEOUT_S="2.5", NEARDUP_KEEP_PAGE="True", NEARDUP_K="0")
    assert written == read(NEARDUP_PROCESSES=3, NEARDUP_TIMEOUT_S=2.5, NEARDUP_KEEP_PAGE=True, NEARDUP_K=0)
    assert written.concurrency == 6


def test_channels_and_k_make_a_rule() -> None:
    """Each of them replaces the state's own rule, and so does a profile."""
    assert read(NEARDUP_CHANNELS="words").rule == rule_for("words")
    assert read(NEARDUP_K=2).rule == rule_for(k=2)
    assert read(NEARDUP_PROFILE="precise").rule == PROFILES["precise"]


def test_a_job_remembers_its_pages_beside_its_requests(tmp_path: Path) -> None:
    """With JOBDIR a resumed crawl knows what the first half kept; NEARDUP_STATE is stronger."""
    job = str(tmp_path / "job")
    assert read(JOBDIR=job).state == tmp_path / "job" / "neardup"
    assert read(JOBDIR=job, NEARDUP_STATE="elsewhere").state == Path("elsewhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEARDUP_ACTION", "discard"),
        ("NEARDUP_ITEMS", "flag"),
        ("NEARDUP_K", "8"),
        ("NEARDUP_K", -1),
        ("NEARDUP_CHANNELS", "title"),
        ("NEARDUP_PROCESSES", 0),
        ("NEARDUP_PROCESSES", True),
        ("NEARDUP_CONCURRENCY", "many"),
        ("NEARDUP_SHARDS", 1.5),
        ("NEARDUP_TIMEOUT_S", "soon"),
        ("NEARDUP_TIMEOUT_S", 0),
        ("NEARDUP_TIMEOUT_S", "inf"),
        ("NEARDUP_KEEP_PAGE", "maybe"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, value: object) -> None:
    """The crawl does not start, and the message shows the value."""
    with pytest.raises(ConfigurationError, match=str(value)):
        read(**{name: value})


def test_a_misspelt_setting_is_not_ignored() -> None:
    """The message names the setting that was probably meant."""
    with pytest.raises(ConfigurationError, match="did you mean NEARDUP_ACTION"):
        read(NEARDUP_ACTIONS="drop")


BOOTSTRAP = {"NEARDUP_KAFKA_BOOTSTRAP": "a:9092"}


def test_without_a_broker_nothing_is_published() -> None:
    """One setting switches it on; the others have defaults."""
    assert read().kafka is None
    kafka = read(**BOOTSTRAP).kafka
    assert kafka is not None
    assert (kafka.connection.bootstrap, kafka.prefix, kafka.buffer_bytes) == ("a:9092", "", 32 * 2**20)


def test_brokers_and_options_come_as_values_or_from_a_command_line() -> None:
    """A list, a dict, a list of name=value, or JSON; a password may hold what it likes, and is not shown."""
    client = {"sasl.mechanism": "PLAIN", "sasl.password": "a,b=c"}
    ways = [client, [f"{name}={value}" for name, value in client.items()], json.dumps(client)]
    for way in ways:
        kafka = read(NEARDUP_KAFKA_BOOTSTRAP=["a:9092", "b:9092"], NEARDUP_KAFKA_CLIENT=way).kafka
        assert kafka is not None
        assert (kafka.connection.bootstrap, dict(kafka.connection.options)) == ("a:9092,b:9092", client)
        assert "a,b=c" not in repr(kafka)


@pytest.mark.parametrize("name", ["STATE", "ACTION", "K", "ITEMS", "SCHEME", "CHANNELS", "SHARDS"])
def test_verdicts_are_given_here_or_there(name: str) -> None:
    """A setting for verdicts in this process beside a broker is refused, and the message says what to do."""
    with pytest.raises(ConfigurationError, match=f"remove NEARDUP_{name} .the service"):
        read(**BOOTSTRAP, **{f"NEARDUP_{name}": "1"})


def test_a_job_may_publish(tmp_path: Path) -> None:
    """JOBDIR is Scrapy's; that a state folder would follow it is no contradiction."""
    assert read(**BOOTSTRAP, JOBDIR=str(tmp_path)).kafka is not None


@pytest.mark.parametrize("name", ["PREFIX", "CLIENT", "BUFFER_BYTES", "BUFFER_PAGES", "CLOSE_TIMEOUT_S"])
def test_a_setting_for_publishing_needs_a_broker(name: str) -> None:
    """Nobody should find out afterwards that nothing was published."""
    with pytest.raises(ConfigurationError, match="means nothing without NEARDUP_KAFKA_BOOTSTRAP"):
        read(**{f"NEARDUP_KAFKA_{name}": "5"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BOOTSTRAP", "nowhere:port", "nowhere:port"),
        ("CLIENT", {"sasl.mechansim": "PLAIN"}, "did you mean"),
        ("CLIENT", ["sasl.mechanism"], "no name or no value"),
        ("BUFFER_BYTES", 0, "whole number"),
        ("BUFFER_PAGES", "some", "whole number"),
        ("CLOSE_TIMEOUT_S", -1, "above 0"),
        ("TOPIC", "pages", "there is no setting NEARDUP_KAFKA_TOPIC"),
    ],
)
def test_what_cannot_be_meant_for_a_broker_is_refused(name: str, value: object, said: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ConfigurationError, match=said):
        read(**{**BOOTSTRAP, f"NEARDUP_KAFKA_{name}": value})
