"""`twinsieve replay`: the verdicts of a service's log once more, under another policy or in another space."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.decision.replica import Replica
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    MATCHING,
    SPACE,
    connection_of,
    rule_of,
    space_of,
    topics_of,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import OutputFile
from dedup_service.interfaces.cli.support.progress import records_progress
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.workers.preparation import Preparer

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.control.replay import Missing, Replayed, ReplayOptions, ReplaySink

__all__ = ["replay_command"]

LOG, PAGES = "log", "pages"


@click.command("replay", epilog=EPILOG)
@with_options(*BROKER)
@click.option(
    "--from",
    "source",
    type=click.Choice([LOG, PAGES]),
    default=LOG,
    show_default=True,
    help="The log alone, with the fingerprints in it; or with each page prepared again from the topic pages.",
)
@click.option("--output", "-o", metavar="FILE|-", help="Verdicts, one line of JSON a page. [default: -]")
@click.option("--to-prefix", metavar="TEXT", help="Fill these topics instead, which are there and empty.")
@with_options(*MATCHING)
@click.option("--action", type=click.Choice([action.value for action in Action]), help="What becomes of duplicates.")
@with_options(*SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
@click.option("--shards", type=click.IntRange(1), default=1, show_default=True, help="Parts of the index.")
@click.option("--quiet", "-q", is_flag=True, help="No summary on stderr.")
def replay_command(**options: Any) -> int:
    """Decide the log of a service anew, from its beginning to where it ends now.

    What is not named stays as the log has it: with no option at all the verdicts are those that were given. Another
    rule or action needs the log alone. Another space (--scheme, --idf, …) needs --from pages, and leaves out the
    pages that the topic keeps no longer. Retractions and corrections hold where they stand. The log that is read and
    whoever works with it are left alone.

    With --to-prefix the new topics get a log and verdicts (from pages: the pages, too), as if a service had begun so,
    and `serve --prefix` goes on from there.
    """
    _check(options)
    with ExitStack() as stack:
        replica, missing = _run(options, stack)
    if not options["quiet"]:
        counts = {"records": replica.sequence + 1, **replica.counts, "missing": missing.count}
        click.echo(msgspec.json.encode(counts).decode(), err=True)
    if missing.first is not None:
        first = f"{missing.first.topic}, partition {missing.first.partition}, offset {missing.first.offset}"
        click.echo(
            f"twinsieve: {missing.count} pages are no longer kept and were left out, the first: {first}", err=True
        )
    return ExitCode.BAD_RECORDS if missing.count else ExitCode.DONE


def _check(options: dict[str, Any]) -> None:
    if options["output"] and options["to_prefix"] is not None:
        raise click.UsageError("--output and --to-prefix are two places: give one of them")
    if options["to_prefix"] == options["prefix"]:
        raise click.UsageError("--to-prefix names the topics that are replayed: give another")
    context = click.get_current_context()
    space = {name for option in SPACE for name in _names(option)}
    given = sorted(
        name for name in space if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    )
    if options["source"] == LOG and given:
        named = ", ".join(given)
        raise click.UsageError(f"another space ({named}) has other fingerprints: add --from pages")


def _names(option: Any) -> Iterator[str]:
    """The names under which an option of the shared ones arrives."""

    def nothing() -> None:
        """Carries the option."""

    yield from (str(parameter.name) for parameter in option(nothing).__click_params__)


def _run(options: dict[str, Any], stack: ExitStack) -> "tuple[Replica, Missing]":
    """Replay, and return the replica at the end, and what was left out."""
    from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
    from dedup_service.runtime.kafka.control.operator_records import require_begun
    from dedup_service.runtime.kafka.control.replay import Missing, replayed_log
    from dedup_service.runtime.kafka.state.page_names import temporary_page_names

    connection, topics = connection_of(options), topics_of(options)
    wish, missing = _wish(options), Missing()
    log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
    require_begun(log, topics)
    replica = Replica(stack.enter_context(temporary_page_names()), shards=options["shards"])
    sink = _sink(options, replica, stack)
    read = stack.enter_context(records_progress("replaying"))
    batches: Iterator[Sequence[Replayed]] = replayed_log(log, wish, read)
    if options["source"] == PAGES:
        batches = _from_pages(batches, options, wish, missing, stack)
    for batch in batches:
        sink.take(batch)
    return replica, missing


def _wish(options: dict[str, Any]) -> "ReplayOptions":
    from dedup_service.runtime.kafka.control.replay import ReplayOptions

    return ReplayOptions(
        rule_of(options),
        None if options["action"] is None else Action(options["action"]),
        build_fingerprinter(space_of(options)).space_id if options["source"] == PAGES else None,
        None if options["to_prefix"] is None else uuid.uuid4().hex,
    )


def _from_pages(
    batches: "Iterator[Sequence[Replayed]]",
    options: dict[str, Any],
    wish: "ReplayOptions",
    missing: "Missing",
    stack: ExitStack,
) -> "Iterator[Sequence[Replayed]]":
    from dedup_service.runtime.kafka.control.replay import PageRefetcher, prepared_again

    assert wish.space_id is not None
    pages = stack.enter_context(closing(PageRefetcher(connection_of(options), topics_of(options).pages)))
    preparer = stack.enter_context(Preparer(space_of(options), options["processes"]))
    return prepared_again(batches, pages, preparer, wish.space_id, missing)


def _sink(options: dict[str, Any], replica: Replica, stack: ExitStack) -> "ReplaySink":
    from dedup_service.runtime.kafka.control.replay import VerdictLines

    if options["to_prefix"] is None:
        return VerdictLines(stack.enter_context(OutputFile(options["output"] or "-")).write, replica)
    from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
    from dedup_service.runtime.kafka.control.replay import ReplayTopics, require_empty
    from dedup_service.runtime.kafka.topics import Topics, require_log

    connection, topics = connection_of(options), Topics(options["to_prefix"])
    require_log(connection, topics)
    require_empty(connection, topics)
    transactions = stack.enter_context(closing(TransactionalProducer(connection, f"{topics.prefix}replay")))
    transactions.open()
    return ReplayTopics(topics, transactions, replica)
