"""The parts of docs/settings.md: tables of the settings, and of the variables that options read."""

from collections.abc import Iterable, Iterator

from dedup_service.interfaces.scrapy.settings import PREFIX, SETTINGS
from docs.commands import commands


def settings(*, publishing: bool) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the settings of publishing, or of all others."""
    yield "setting", "values", "default", "meaning"
    for one in SETTINGS:
        if one.name.startswith("KAFKA_") == publishing:
            yield f"`{PREFIX}{one.name}`", one.values, one.default, one.meaning


def variables() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the variables that are defaults of options."""
    read: dict[tuple[str, str], list[str]] = {}
    for name, command in commands():
        for option in command.params:
            if isinstance(option.envvar, str):
                read.setdefault((option.envvar, option.opts[0]), []).append(name)
    yield "variable", "default of", "read by"
    for (variable, option), names in read.items():
        yield f"`{variable}`", f"`{option}`", ", ".join(f"`{name}`" for name in names)


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return `rows`, whose first one is the heading, as a table."""
    heading, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([heading, "|---" * heading.count(" | ") + "|---|", *others]) + "\n"


def part(name: str) -> str:
    """Return the table `name`."""
    return table(variables() if name == "variables" else settings(publishing=name == "publishing"))
