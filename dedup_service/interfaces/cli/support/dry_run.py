"""`filter --dry-run`: which pages of a state would have other verdicts under another profile."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from dedup_service.core.rules.profiles import rule_text
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.options import rule_from
from dedup_service.interfaces.cli.support.outputs import OutputFile, check_outside, check_writable
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.embedded.administration import policy_of_state
from dedup_service.runtime.embedded.dry_run import verdicts_under
from dedup_service.runtime.embedded.folder import state_in
from dedup_service.runtime.verdict_json import plain_json, verdict_dict

_OWN = frozenset({"dry_run", "state", "profile", "output", "as_json", "quiet"})
_SAID = frozenset({"verdict", "duplicate_of", "duplicate_of_url", "score", "reason"})
_EXAMPLES = 2
"""Pages of each change that the table names."""


def dry_run() -> int:
    """Decide the pages of the state of the present command again; write a line for each that changes."""
    context = click.get_current_context()
    options = context.params
    named = {one.name: one.opts[0] for one in context.command.params} | {"sources": "FILE"}
    others = [
        named[name]
        for name, value in options.items()
        if value and name not in _OWN and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if others or not options["state"]:
        raise click.UsageError(
            "--dry-run decides the pages of a state again: give --state"
            + (f", and leave {', '.join(others)} out" if others else "")
        )
    folder = state_in(options["state"])
    check_outside(folder, **{"--output": options["output"]})
    check_writable(**{"--output": options["output"]})
    rule = rule_from(options) or policy_of_state(folder)[0]
    pages = lost = 0
    changes: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = defaultdict(list)
    with Interrupt() as interrupt, OutputFile(options["output"]) as output:
        for was, now in verdicts_under(Path(folder), rule):
            if interrupt.stopped():
                break
            pages, lost = pages + 1, lost + (now is None)
            if now is None or (was.kind, was.duplicate_of_url) == (now.kind, now.duplicate_of_url):
                continue
            change = was.kind.value, now.kind.value
            changes[change] += 1
            if len(examples[change]) < _EXAMPLES:
                examples[change].append(_example(was, now))
            said = {name: value for name, value in verdict_dict(was).items() if name in _SAID}
            output.write([plain_json({**verdict_dict(now), "was": said}) + b"\n"])
    counts = {"pages": pages, "changed": changes.total(), "not_judged": lost, "rule": rule_text(rule)}
    if options["as_json"]:
        rows = [{"was": was, "verdict": now, "pages": count} for (was, now), count in changes.most_common()]
        click.echo(msgspec.json.encode(counts | {"changes": rows}), err=True)
    elif not options["quiet"]:
        _print(counts, changes, examples)
    return interrupt.code or ExitCode.DONE


def _example(was: Verdict, now: Verdict) -> str:
    """Return the pair to look at: the page, the page that it is a duplicate of under one rule, and why."""
    said = now if now.duplicate_of_url else was
    other = f" and {said.duplicate_of_url}, {said.score}" if said.duplicate_of_url else ""
    return terminal_safe(f"{now.url}{other}: {said.reason}")


def _print(counts: Mapping[str, Any], changes: Counter[tuple[str, str]], examples: Mapping[Any, list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"{counts['changed']:,} of {counts['pages']:,} pages would change under {counts['rule']}"
    table = Table("was", "would be", title=Text(title), title_justify="left")
    table.add_column("pages", justify="right")
    table.add_column("for example", overflow="fold")
    for change, count in changes.most_common():
        table.add_row(*change, f"{count:,}", Text("\n".join(examples[change])))
    console = Console(stderr=True)
    console.print(table if changes else title, highlight=False)
    if counts["not_judged"]:
        console.print(f"{counts['not_judged']:,} pages cannot be judged: what they are compared with is gone")
