"""`twinsieve topics`: make the service's topics, check them, look at them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    connection_of,
    duration_ms,
    said,
    topics_of,
    with_options,
)

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.control.hanging_transactions import HangingTransaction
    from dedup_service.runtime.kafka.topics import TopicCreation, TopicDescription, TopicProblem

__all__ = ["topics_group"]

_JSON = click.option("--json", "as_json", is_flag=True, help="One line of JSON instead of the table.")


@click.group("topics")
def topics_group() -> None:
    """Make the topics of the service, and check them."""


@topics_group.command("create", epilog=EPILOG)
@with_options(*BROKER)
@click.option(
    "--partitions", type=click.IntRange(1), default=8, show_default=True, help="Of pages and what is made of them."
)
@click.option("--replication", type=click.IntRange(1), help="Copies of each partition. [default: 3, or one a broker]")
@click.option(
    "--pages-retention",
    metavar="TIME",
    callback=duration_ms,
    default="7d",
    show_default=True,
    help="How long pages are kept.",
)
@click.option(
    "--output-retention",
    metavar="TIME",
    callback=duration_ms,
    default="7d",
    show_default=True,
    help="How long verdicts and what is passed on are kept.",
)
@click.option(
    "--dlq-retention",
    metavar="TIME",
    callback=duration_ms,
    default="30d",
    show_default=True,
    help="How long bad records are kept.",
)
@click.option(
    "--max-page-bytes",
    type=int,
    default=8 << 20,
    show_default=True,
    help="Largest page, as its producer compresses it; outputs take twice that, dead letters four times.",
)
@_JSON
def create_command(
    partitions: int,
    replication: int | None,
    pages_retention: int,
    output_retention: int,
    dlq_retention: int,
    max_page_bytes: int,
    *,
    as_json: bool,
    **broker: Any,
) -> int:
    """Create the topics that are missing. One that exists is left as it is.

    The topic `fingerprints` has one partition and is kept for ever: it is the memory of the service. Exit code 1 where
    the service would refuse what was there before.
    """
    from dedup_service.runtime.kafka.topics import Layout, check, create

    layout = Layout(
        partitions=partitions,
        replication=replication,
        pages_retention_ms=pages_retention,
        output_retention_ms=output_retention,
        dlq_retention_ms=dlq_retention,
        max_page_bytes=max_page_bytes,
    )
    connection, topics = connection_of(broker), topics_of(broker)
    made = create(connection, topics, layout)
    problems = check(connection, topics)
    if as_json:
        _echo({"topics": [_made_plain(one) for one in made], "problems": list(map(asdict, problems))})
    else:
        _table("Topics", ("topic", "partitions", "copies", "kept", "now"), map(_made_row, made))
        _print_problems([problem for problem in problems if problem.fault])
    return _code(problems)


@topics_group.command("check", epilog=EPILOG)
@with_options(*BROKER)
@_JSON
def check_command(*, as_json: bool, **broker: Any) -> int:
    """Say what is wrong with the topics and what to do; exit code 1 where `serve` would refuse them."""
    from dedup_service.runtime.kafka.topics import check

    topics = topics_of(broker)
    problems = check(connection_of(broker), topics)
    if as_json:
        _echo({"problems": list(map(asdict, problems))})
    elif problems:
        _print_problems(problems)
    else:
        click.echo(f"All {len(topics.all)} topics are as they should be.")
    return _code(problems)


@topics_group.command("describe", epilog=EPILOG)
@with_options(*BROKER)
@_JSON
def describe_command(*, as_json: bool, **broker: Any) -> int:
    """Show the topics that are there, with the settings in force."""
    from dedup_service.runtime.kafka.topics import describe

    facts = describe(connection_of(broker), topics_of(broker))
    if as_json:
        _echo({"topics": list(map(asdict, facts))})
    else:
        columns = ("topic", "partitions", "copies", "cleanup", "kept", "largest batch", "in sync at least", "state")
        _table("Topics", columns, map(_fact_row, facts))
    return ExitCode.DONE


@topics_group.command("repair-transactions", epilog=EPILOG)
@with_options(*BROKER)
@click.option("--dry-run", is_flag=True, help="Only say what there is to end.")
@_JSON
def repair_transactions_command(*, dry_run: bool, as_json: bool, **broker: Any) -> int:
    """End transactions that a broker decided and left open, as it decided them.

    For readers, or a service, that stand still at one place while records come in behind it: Apache Kafka 4.3.1 can
    lose the end of a transaction while all copies of a partition are away (KAFKA-20734). Exit code 1 where one is left
    whose outcome the brokers have forgotten.
    """
    from dedup_service.runtime.kafka.control.hanging_transactions import find_hanging, repair

    connection = connection_of(broker)
    found = find_hanging(connection, topics_of(broker))
    if not dry_run:
        repair(connection, found)
    if as_json:
        _echo({"repaired": not dry_run, "transactions": [_hanging_plain(one) for one in found]})
    elif found:
        columns = ("topic", "partition", "from offset", "written", "by", "decided", "now")
        _table("Transactions without an end", columns, (_hanging_row(one, dry_run=dry_run) for one in found))
    else:
        click.echo("No transaction is left without an end.")
    return ExitCode.FAILED if any(one.outcome is None for one in found) else ExitCode.DONE


def _hanging_plain(one: "HangingTransaction") -> dict[str, Any]:
    return {**asdict(one), "outcome": one.outcome and one.outcome.value}


def _hanging_row(one: "HangingTransaction", *, dry_run: bool) -> tuple[str, ...]:
    written = datetime.fromtimestamp(one.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    decided = "forgotten" if one.outcome is None else one.outcome.value
    now = "open" if dry_run else "ended"
    if one.outcome is None:
        now = "open: abort it (kafka-transactions.sh abort) and publish again what it was about"
    return one.topic, f"{one.partition}", f"{one.offset}", written, one.transactional_id, decided, now


def _code(problems: Sequence["TopicProblem"]) -> int:
    return ExitCode.FAILED if any(problem.fault for problem in problems) else ExitCode.DONE


def _made_plain(made: "TopicCreation") -> dict[str, Any]:
    differences = {name: {"found": found, "wanted": wanted} for name, (found, wanted) in made.differences.items()}
    return {**asdict(made.plan), "created": made.created, "differences": differences}


def _made_row(made: "TopicCreation") -> tuple[str, ...]:
    shown = made.existing or made.plan
    differs = ", ".join(f"{name} {found}, not {wanted}" for name, (found, wanted) in made.differences.items())
    was_there = f"was there, not changed: {differs}" if differs else "was there"
    kept = said(int(shown.settings["retention.ms"]))
    return shown.name, f"{shown.partitions}", f"{shown.replication}", kept, "created" if made.created else was_there


def _fact_row(fact: "TopicDescription") -> tuple[str, ...]:
    settings = fact.settings
    state = "ready" if not fact.offline else f"{fact.offline} partitions without a leader"
    if fact.under_replicated and not fact.offline:
        state = f"{fact.under_replicated} partitions with copies behind"
    return (
        fact.name,
        f"{fact.partitions}",
        f"{fact.replication}",
        settings.get("cleanup.policy", "?"),
        said(int(settings.get("retention.ms", -1))),
        f"{int(settings.get('max.message.bytes', 0)):,}",
        settings.get("min.insync.replicas", "?"),
        state,
    )


def _print_problems(problems: Sequence["TopicProblem"]) -> None:
    if problems:
        rows = ((p.topic, p.setting, p.found, p.wanted, p.advice, "refused" if p.fault else "note") for p in problems)
        _table("Problems", ("topic", "what", "is", "should be", "what to do", "weight"), rows)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _echo(value: Any) -> None:
    click.echo(msgspec.json.encode(value).decode())
