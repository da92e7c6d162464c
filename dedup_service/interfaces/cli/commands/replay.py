"""`twinsieve replay`: decide a service's log again, under the same or another policy or space."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.decision.replica import Replica
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    KEEP,
    PROCESSES,
    PROFILE,
    SERVED_BASES,
    SPACE,
    bases_from,
    connection_from,
    preparer_from,
    rule_from,
    space_from,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import OutputFile
from dedup_service.interfaces.cli.support.progress import records_progress
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.runtime.resources import build_fingerprinter

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.control.replay import LeftOut, Replayed, ReplayOptions, VerdictLines
    from dedup_service.runtime.kafka.control.replay_topics import ReplayTopics

LOG, PAGES = "log", "pages"

GROUP = "twinsieve"
"""The default of `serve`, which this must equal; importing it would make `--help` load the service."""

MAX_BYTES = 32 << 20
"""Size limit of one message, unpacked: what the service writes, too."""


@click.command("replay", cls=GroupedCommand, epilog="--bootstrap kafka:9092 --profile precise -o verdicts.jsonl")
@with_options(*BROKER)
@click.option(
    "--from",
    "source",
    type=click.Choice([LOG, PAGES]),
    default=LOG,
    show_default=True,
    help="Use the fingerprints in the log, or prepare each page again from the topic `pages`.",
)
@click.option(
    "--output", "-o", metavar="FILE|-", help="Write one line of JSON for each page. [default: -, standard output]"
)
@click.option(
    "--to-prefix", metavar="TEXT", help="Instead of --output, fill the topics with this prefix; they must be empty."
)
@click.option(
    "--group", metavar="NAME", help=f"With --to-prefix: --group of the service that will run there. [default: {GROUP}]"
)
@with_options(PROFILE, KEEP, SERVED_BASES)
@click.option(
    "--action",
    type=click.Choice([action.value for action in Action]),
    help="What happens to duplicates. [default: that of the log]",
)
@with_options(SPACE)
@with_options(PROCESSES)
def replay_command(**options: Any) -> int:
    """Replay the log of a service, from its beginning to its present end.

    Without options, the verdicts are those that were given. Another rule or action needs only the log.
    Another space (--space) needs `--from pages`; pages that have expired from that topic are
    left out and counted (exit code 3). Retractions and corrections apply at their places in the log. The
    log is only read, and services continue. A log that goes on from bases needs them all (--base), as they were
    but for take-downs; new topics have them, too.

    With --to-prefix, new topics get a log and verdicts, with `--from pages` also the pages, as if a service
    had decided them so from the start, but without those that were retracted later. `serve --prefix` continues from
    there. An interrupted replay leaves topics that nothing accepts: remove them, create them again, and repeat it.
    """
    _check(options)
    with Interrupt() as interrupt, ExitStack() as stack:
        records, replica, left_out = _run(options, stack, interrupt)
    missed = {"unreadable": left_out.unreadable, "missing": left_out.missing, "taken_down": left_out.taken_down}
    click.echo(msgspec.json.encode({"records": records, **replica.counts, **missed}).decode(), err=True)
    if left_out.unreadable:
        click.echo(f"twinsieve: {left_out.unreadable} messages of the log are not records and were left out", err=True)
    if left_out.first is not None:
        first = f"{left_out.first.topic}, partition {left_out.first.partition}, offset {left_out.first.offset}"
        click.echo(
            f"twinsieve: {left_out.missing} pages were left out, as they have expired or came by a backfill, "
            f"the first: {first}",
            err=True,
        )
    return interrupt.code or (ExitCode.BAD_RECORDS if left_out.missing else ExitCode.DONE)


def _check(options: dict[str, Any]) -> None:
    if options["output"] and options["to_prefix"] is not None:
        raise click.UsageError("--output and --to-prefix exclude each other: give one of them")
    if options["to_prefix"] == options["prefix"]:
        raise click.UsageError("--to-prefix names the topics that are read: give another prefix")
    if options["group"] is not None and options["to_prefix"] is None:
        raise click.UsageError("--group is of a service that runs on new topics: add --to-prefix")
    if options["source"] == LOG and options["space"] is not None:
        raise click.UsageError("another space has other fingerprints: add --from pages to --space")


def _run(options: dict[str, Any], stack: ExitStack, interrupt: Interrupt) -> "tuple[int, Replica, LeftOut]":
    """Replay the log; return how many records, the replica at their end, and what was left out.

    A replay that a signal ends is not finished: its topics stay refused.
    """
    from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
    from dedup_service.runtime.kafka.control.operator_records import require_begun, require_same_pages
    from dedup_service.runtime.kafka.control.replay import LeftOut, last_retractions, replayed_log
    from dedup_service.runtime.kafka.state.temporary_replica import temporary_replica

    connection, topics = connection_from(options), topics_from(options)
    requested, left_out = _replay_options(options), LeftOut()
    log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
    require_begun(connection, topics, log)
    if options["source"] == PAGES:
        require_same_pages(connection, topics, log)
    given, space_id = bases_from(options), requested.space_id
    reading = stack.enter_context(temporary_replica(log, given, space_id=space_id))
    requested, sink = _sink(options, requested, reading.replica, log.first, stack)
    read = stack.enter_context(records_progress("replaying"))
    taken_down = {} if options["to_prefix"] is None else last_retractions(log, read)
    batches: Iterator[Sequence[Replayed]] = replayed_log(log, requested, left_out, read, taken_down)
    if options["source"] == PAGES:
        batches = _from_pages(batches, options, requested, left_out, stack)
    records = 0
    for batch in batches:
        sink.take(batch)
        reading.step(len(batch))
        records += len(batch)
        if interrupt.stopped():
            return records, reading.replica, left_out
    sink.finish()
    return records, reading.replica, left_out


def _replay_options(options: dict[str, Any]) -> "ReplayOptions":
    from dedup_service.runtime.kafka.control.replay import ReplayOptions

    return ReplayOptions(
        rule_from(options),
        None if options["action"] is None else Action(options["action"]),
        build_fingerprinter(space_from(options)).space_id if options["source"] == PAGES else None,
        options["keep"],
    )


def _from_pages(
    batches: "Iterator[Sequence[Replayed]]",
    options: dict[str, Any],
    requested: "ReplayOptions",
    left_out: "LeftOut",
    stack: ExitStack,
) -> "Iterator[Sequence[Replayed]]":
    from dedup_service.runtime.kafka.control.replay import PageRefetcher, prepared_again

    assert requested.space_id is not None, "--from pages names a space"
    pages = stack.enter_context(closing(PageRefetcher(connection_from(options), topics_from(options).pages)))
    preparer = stack.enter_context(preparer_from(options, space_from(options)))
    return prepared_again(batches, pages, preparer, requested.space_id, left_out)


def _sink(
    options: dict[str, Any], requested: "ReplayOptions", replica: Replica, first: int, stack: ExitStack
) -> "tuple[ReplayOptions, VerdictLines | ReplayTopics]":
    """Return what the replay changes, and where it writes; new topics are marked as unfinished.

    first: what the first message of the log is numbered.
    """
    from dedup_service.runtime.kafka.control.replay import VerdictLines

    if options["to_prefix"] is None:
        return requested, VerdictLines(stack.enter_context(OutputFile(options["output"] or "-")).write, replica)
    from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
    from dedup_service.runtime.kafka.control.operator_records import binding_of
    from dedup_service.runtime.kafka.control.replay_topics import ReplayTopics, require_empty
    from dedup_service.runtime.kafka.topics import OutputMode, Topics

    connection, topics = connection_from(options), Topics(options["to_prefix"])
    binding = binding_of(connection, topics, f"{topics.prefix}{options['group'] or GROUP}", OutputMode.VERDICTS)
    require_empty(connection, topics)
    transactions = TransactionalProducer(connection, f"{topics.prefix}replay", max_bytes=MAX_BYTES)
    stack.enter_context(closing(transactions)).open()
    require_empty(connection, topics)  # again: no other replay can write from here on
    log = uuid.uuid4().hex
    sink = ReplayTopics(topics, log, transactions, replica, first=first)
    sink.begin()
    return replace(requested, log=log, binding=binding), sink
