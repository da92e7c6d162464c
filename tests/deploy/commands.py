"""Commands of the compose file and the chart, read as `serve` and `topics create` read them."""

from collections.abc import Sequence
from typing import Any

from dedup_service.interfaces.cli.commands.serve import serve_command
from dedup_service.interfaces.cli.support.step_options import refuse_unused_options


def options_of(command: Sequence[str]) -> dict[str, str]:
    """Return the options of a command; each has one value."""
    words = [word for word in command if word not in {"serve", "topics", "create"}]
    return dict(zip(words[::2], words[1::2], strict=True))


def parsed(command: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command that `serve` accepts; UsageError for those that its steps do not use."""
    name, *arguments = command
    assert name == "serve"
    with serve_command.make_context(name, [*arguments]) as context:
        refuse_unused_options(context)
        return context.params
