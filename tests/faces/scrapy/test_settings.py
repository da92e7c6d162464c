"""`NEARDUP_*` settings are read once, and what cannot be understood is said."""

from pathlib import Path

import pytest
from scrapy.settings import Settings

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rule import rule_for
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
    """Either of the two replaces the state's own rule."""
    assert read(NEARDUP_CHANNELS="words").rule == rule_for("words")
    assert read(NEARDUP_K=2).rule == rule_for("both", k=2)


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
