"""The parts of docs/commands.md: a table of the commands, and the help of each."""

from collections.abc import Iterator

import click

from dedup_service.interfaces.cli.main import COMMANDS, twinsieve

WIDTH = 100
"""Of the help, in characters: the widest that it gets in a terminal."""


def commands(command: click.Command = twinsieve, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command below `command`, with its name."""
    if not isinstance(command, click.Group):
        yield name.strip(), command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        if (below := command.get_command(context, word)) is not None:
            yield from commands(below, f"{name} {word}")


def help_of(name: str) -> str:
    """Return what `twinsieve NAME --help` prints."""
    context = click.Context(twinsieve, info_name="twinsieve", terminal_width=WIDTH, **twinsieve.context_settings)
    command: click.Command = twinsieve
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
        context = click.Context(command, parent=context, info_name=word)
    return command.get_help(context)


def part(name: str) -> str:
    """Return the table, or the help."""
    if name == "table":
        rows = [f"| {_link(name)} | {text} |" for name, (_, text) in COMMANDS.items()]
        return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])
    return "\n".join(f"## twinsieve {name}\n\n```text\n{help_of(name)}\n```\n" for name, _ in commands())


def _link(name: str) -> str:
    below = [one for one, _ in commands() if one.split()[0] == name]
    return f"[`{name}`](#twinsieve-{below[0].replace(' ', '-')})"
