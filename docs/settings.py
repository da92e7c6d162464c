"""Write the tables of docs/settings.md from the code: python -m docs.settings."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from dedup_service.interfaces.cli.main import twinsieve
from dedup_service.interfaces.scrapy.settings import PREFIX, SETTINGS

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- made by `python -m docs.settings`: {} -->\n", "<!-- end -->\n"


def settings(*, publishing: bool) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the settings of publishing, or of all others."""
    yield "setting", "values", "default", "meaning"
    for one in SETTINGS:
        if one.name.startswith("KAFKA_") == publishing:
            yield f"`{PREFIX}{one.name}`", one.values, one.default, one.meaning


def variables() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the variables that are defaults of options."""
    read: dict[tuple[str, str], list[str]] = {}
    for name, command in commands(twinsieve, ""):
        for option in command.params:
            if isinstance(option.envvar, str):
                read.setdefault((option.envvar, option.opts[0]), []).append(name)
    yield "variable", "default of", "read by"
    for (variable, option), names in read.items():
        yield f"`{variable}`", f"`{option}`", ", ".join(f"`{name}`" for name in names)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below `command`, with its name."""
    if not isinstance(command, click.Group):
        yield name.strip(), command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        if (below := command.get_command(context, word)) is not None:
            yield from commands(below, f"{name} {word}")


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return `rows`, whose first one is the heading, as a table."""
    heading, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([heading, "|---" * heading.count(" | ") + "|---|", *others]) + "\n"


TABLES = {
    "verdicts": lambda: settings(publishing=False),
    "publishing": lambda: settings(publishing=True),
    "variables": variables,
}


def page(text: str) -> str:
    """Return the text of the page with the tables of this code."""
    for name, rows in TABLES.items():
        before, begin, after = text.partition(BEGIN.format(name))
        _, end, after = after.partition(END)
        assert (begin, end) == (BEGIN.format(name), END), f"{PAGE} has no place for the table {name}"
        text = f"{before}{begin}\n{table(rows())}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
