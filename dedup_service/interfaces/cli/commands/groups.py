"""`twinsieve groups`: each kept page with its copies, and which of them stands for the group."""

from typing import Any

import click
import msgspec

from dedup_service.core.groups.canonical import CanonicalPolicy, host_of, policy_of_log
from dedup_service.core.groups.grouping import grouped
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.group_outputs import open_groups
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    SERVED_BASES,
    TARGET,
    bases_from,
    connection_from,
    state_folder,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import check_outside, check_writable
from dedup_service.interfaces.cli.support.progress import records_progress
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.runtime.groups.group_values import group_values
from dedup_service.runtime.groups.policies import read_policy
from dedup_service.runtime.groups.spool import GroupSpool, Progress, group_spool


class _StoppedError(Exception):
    """A signal has arrived."""


@click.command("groups", cls=GroupedCommand, epilog="--state state --min-size 2 -o groups.jsonl")
@with_options(*TARGET, SERVED_BASES)
@click.option(
    "--output",
    "-o",
    metavar="FILE|-",
    default="-",
    help="Write one line of JSON for each group, or one row to a file .parquet. [default: -, standard output]",
)
@click.option(
    "--canonical",
    metavar="POLICY",
    help="Which page stands for a group: earliest, longest, complete, hosts:HOST,HOST…, or MODULE:FUNCTION. "
    "[default: the policy of the service's log; earliest for a state folder]",
)
@click.option(
    "--min-size",
    metavar="N",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Only groups of at least so many URLs; 2: those with a copy; 0: also those that were retracted as a whole.",
)
@click.option("--host", metavar="HOST", help="Only groups that have a page on this host, or on one below it.")
def groups_command(**options: Any) -> int:
    """List the pages of a state folder or of a service's log in groups: each kept page with its copies.

    Each page of the log is in one group. A member has its URL, id, verdict, distance, score and rule, when it was
    logged and, in a service, its place in the topic `pages`.

    --canonical chooses the page that stands for a group. `longest` has the most letters of main text. `complete` has a
    title, then the most letters that are not the own text of its host, then the largest share of main text, a date, and
    the fewest sentences of its host. `hosts:` prefers pages on these hosts, in this
    order. MODULE:FUNCTION names a function in Python that is given each member and returns a key, the least of which
    is chosen. Of equal pages, the earliest is chosen. No policy changes a verdict.

    Pages are sorted in a temporary file (TMPDIR), about 1 KB a page. For a service, the whole log is read and decided
    again, with the memory that its kept pages take, and with the bases that it goes on from (--base).
    """
    policy = None if options["canonical"] is None else read_policy(options["canonical"])
    host = None if options["host"] is None else host_of(options["host"])
    folder = state_folder(options)
    check_outside(folder, **{"--output": options["output"]})
    check_writable(**{"--output": options["output"]})
    with Interrupt() as interrupt, group_spool(with_sentences=policy is None or policy.asks_host_text) as spool:
        try:
            facts = _spool(folder, options, spool, interrupt)
            counts = _write(spool, options, policy or policy_of_log(spool.policy), host, interrupt)
        except _StoppedError:
            return interrupt.code or ExitCode.INTERRUPTED
    click.echo(msgspec.json.encode(counts | facts).decode(), err=True)
    return ExitCode.DONE


def _spool(folder: str | None, options: dict[str, Any], spool: GroupSpool, interrupt: Interrupt) -> dict[str, int]:
    """Add all pages of the log to the spool; return what else there is to say of it, for the summary."""
    with records_progress("reading the log") as bar:

        def read(done: int, total: int) -> None:
            bar(done, total)
            if interrupt.stopped():
                raise _StoppedError

        return _spool_log(options, spool, read) if folder is None else _spool_state(folder, spool, read)


def _write(
    spool: GroupSpool, options: dict[str, Any], policy: CanonicalPolicy, host: str | None, interrupt: Interrupt
) -> dict[str, int]:
    """Write the groups; return how many, and how many pages of the log are in none that is written."""
    groups = grouped(spool.members(), policy, min_size=options["min_size"], host=host)
    counts = {"groups": 0, "members": 0, "omitted": 0}
    with open_groups(options["output"]) as output:
        for group in groups:
            output.write(group_values(group, policy))
            counts["groups"] += 1
            counts["members"] += len(group.members)
            counts["omitted"] += group.omitted
            if interrupt.stopped():
                raise _StoppedError
    return counts | {"left_out": spool.pages - counts["members"] - counts["omitted"]}


def _spool_state(folder: str, spool: GroupSpool, read: Progress) -> dict[str, int]:
    from dedup_service.runtime.groups.journal_members import spool_state

    return {"deleted_up_to": spool_state(folder, spool, read)}


def _spool_log(options: dict[str, Any], spool: GroupSpool, read: Progress) -> dict[str, int]:
    from dedup_service.runtime.kafka.explain.log_members import spool_log

    counts = spool_log(connection_from(options), topics_from(options), spool, read, bases_from(options))
    return {name: counts.get(name, 0) for name in ("rejected", "expired", "repeated", "unreadable", "unknown_policies")}
