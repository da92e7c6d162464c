"""`twinsieve policy` on a state folder: show and change its rule."""

import json
from pathlib import Path

import pytest

from dedup_service.core.rules.profiles import rule_for
from tests.interfaces.cli.running import Cli, page, write_lines


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    """A state folder of another space than the default, with three pages."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(3)])
    assert cli("filter", pages, "--state", tmp_path / "state", "--space", "tf", "--quiet").code == 0
    return tmp_path / "state"


def test_the_rule_in_force_is_shown(cli: Cli, state: Path) -> None:
    """It is shown as text and as JSON, whatever the space of the state."""
    assert "rule     balanced\n" in cli("policy", "show", "--state", state).out
    (shown,) = cli("policy", "show", "--state", state, "--json").lines
    assert shown["rule"] == rule_for().to_dict()
    assert shown["space"]


def test_a_new_rule_is_a_record_of_the_log(cli: Cli, state: Path) -> None:
    """Setting the same rule again adds no record."""
    first = cli("policy", "set", "--state", state, "--profile", "balanced:2")
    assert (first.code, first.out) == (0, "sequence 4: balanced:2\n")
    again = cli("policy", "set", "--state", state, "--profile", "balanced:2")
    assert (again.code, again.out) == (0, "the log already has this policy: balanced:2\n")
    (shown,) = cli("policy", "show", "--state", state, "--json").lines
    assert shown["rule"] == rule_for(k=2).to_dict()
    assert json.loads(cli("state", "info", state, "--json").out)["policies"] == 2


def test_bounds_of_expiry_are_set_and_shown(cli: Cli, state: Path) -> None:
    """They are a record of the log and keep the rule; `all` ends expiry."""
    ran = cli("policy", "set", "--state", state, "--keep", "2,90d")
    assert (ran.code, ran.out) == (0, "sequence 4: balanced; keep 2 pages, 90d\n")
    assert "keep     2 pages, 90d\n" in cli("policy", "show", "--state", state).out
    (shown,) = cli("policy", "show", "--state", state, "--json").lines
    assert (shown["rule"], shown["keep"]) == (rule_for().to_dict(), {"max_pages": 2, "max_age_minutes": 129_600})
    info = json.loads(cli("state", "info", state, "--json").out)
    assert (info["keep"], info["expired"]) == (shown["keep"], {"count": 0, "age": 0})
    assert "2 pages, 90d" in cli("state", "info", state).out
    assert cli("policy", "set", "--state", state, "--keep", "all").code == 0
    assert "keep     all\n" in cli("policy", "show", "--state", state).out


@pytest.mark.parametrize("policy", ["os:system", "best", "hosts:", ""])
def test_canonical_pages_that_a_log_cannot_have_are_refused(cli: Cli, policy: str) -> None:
    """Before any broker is asked, and nothing is imported; the message says what may be given."""
    ran = cli("policy", "set", "--bootstrap", "nowhere.invalid:1", "--canonical", policy)
    assert ran.code == 2
    assert ("is no host" if policy == "hosts:" else "hosts:HOST,HOST…. A function is for") in ran.err


def test_bounds_that_are_none_are_refused(cli: Cli, state: Path) -> None:
    """The message says what is allowed."""
    ran = cli("policy", "set", "--state", state, "--keep", "90m")
    assert ran.code == 2
    assert "an age (90d, 12h or 8w)" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--profile", "balanced:2"], "no log is named"),
        (["--state", "s", "--bootstrap", "a:1", "--profile", "balanced:2"], "two logs"),
        (["--state", "s"], "nothing to set"),
        (["--state", "s", "--action", "drop"], "each run"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: list[str], shown: str) -> None:
    """It is refused before anything is opened."""
    ran = cli("policy", "set", *arguments)
    assert ran.code == 2
    assert shown in ran.err


def test_the_folder_of_a_service(cli: Cli, tmp_path: Path) -> None:
    """It is refused: the log of a service is on the broker."""
    (tmp_path / "instance").write_text("one\n")
    ran = cli("policy", "show", "--state", tmp_path)
    assert ran.code == 1
    assert "Kafka service" in ran.err
