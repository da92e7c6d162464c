"""`--output`: the format by the file extension."""

from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from twinsieve_crawler.cli.feeds import feeds


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.jsonl", "jsonlines"),
        ("a.jl", "jsonlines"),
        ("a.json", "json"),
        ("a.csv", "csv"),
        ("a.xml", "xml"),
        ("a.jsonl.gz", "jsonlines"),
    ],
)
def test_the_extension_names_the_format(tmp_path: Path, name: str, form: str) -> None:
    """A .gz after it compresses the feed."""
    [(target, options)] = feeds(str(tmp_path / name), resume=False).items()
    assert (target, options["format"], options["overwrite"]) == (str(tmp_path / name), form, True)
    assert ("postprocessing" in options) == name.endswith(".gz")


def test_a_dash_is_standard_output() -> None:
    """The pages are written as JSON lines, for a pipe."""
    assert feeds("-", resume=False) == {"stdout:": {"format": "jsonlines"}}


def test_a_resumed_job_appends_to_its_file() -> None:
    """The pages of the first run are not overwritten."""
    [options] = feeds("pages.jsonl", resume=True).values()
    assert options["overwrite"] is False


def test_a_percent_sign_is_taken_literally(tmp_path: Path) -> None:
    """Scrapy formats feed names, so it is escaped."""
    [target] = feeds(str(tmp_path / "100%.csv"), resume=False)
    assert target % {} == str(tmp_path / "100%.csv")


@pytest.mark.parametrize("name", ["pages", "pages.txt", "pages.gz"])
def test_an_unknown_extension_is_refused(name: str) -> None:
    """The message lists the known ones."""
    with pytest.raises(ConfigurationError, match=r"\.jsonl"):
        feeds(name, resume=False)
