"""The help of each command: options in groups, and an example that can be typed."""

import click
import pytest

from dedup_service.interfaces.cli.support.grouped_help import GROUPS, GroupedCommand
from docs.commands import commands, help_of

COMMANDS = dict(commands())


def test_each_option_is_in_one_group() -> None:
    """A new option is placed by whoever adds it, and a name that no command has leaves the table."""
    placed = [name for names in GROUPS.values() for name in names.split()]
    given = {one.name for command in COMMANDS.values() for one in command.params if isinstance(one, click.Option)}
    assert sorted(placed) == sorted(given)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example(name: str) -> None:
    """Its last line is a command line of this command, which tests of the documents parse."""
    assert isinstance(COMMANDS[name], GroupedCommand)
    *_, heading, example = help_of(name).splitlines()
    assert heading == "Example:"
    assert example.startswith(f"  twinsieve {name} ")


def test_groups_have_one_order() -> None:
    """What a new user needs comes first; what is for research, and --help, last."""
    headings = [line[:-1] for line in help_of("filter").splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Input", "Output", "State", "What is a duplicate", "Limits", "Expert", "Options", "Example"]
    assert help_of("filter").index("Expert:") < help_of("filter").index("--space")


def test_a_command_has_no_empty_group() -> None:
    """A group of which a command has no option is not shown; without options, --help is all."""
    assert help_of("state compact").splitlines()[-5:-2] == ["Options:", "  -h, --help  Show this message and exit.", ""]
