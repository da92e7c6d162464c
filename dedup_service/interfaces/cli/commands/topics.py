"""`twinsieve topics`: create and check the topics of a service, and repair their transactions."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    OUTPUTS,
    connection_from,
    format_duration_ms,
    parse_duration_ms,
    topics_from,
    with_options,
)

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.control.hanging_transactions import HangingTransaction
    from dedup_service.runtime.kafka.topics import TopicCreation, TopicProblem

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of a table.")


@click.group("topics")
def topics_group() -> None:
    """Create, check and repair the topics of a service."""


@topics_group.command("create", cls=GroupedCommand, epilog="--bootstrap kafka:9092 --partitions 8 --retention 7d")
@with_options(*BROKER)
@click.option(
    "--partitions",
    metavar="N",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Partitions of `pages`, `pages.unique`, `pages.duplicate` and `verdicts`.",
)
@click.option(
    "--replication",
    metavar="N",
    type=click.IntRange(1),
    help="Replicas of each partition. [default: 3, or the number of brokers if that is smaller]",
)
@click.option(
    "--retention",
    metavar="TIME",
    callback=parse_duration_ms,
    default="7d",
    show_default=True,
    help="Retention of `pages`, `pages.unique`, `pages.duplicate`, `verdicts` and `candidates`.",
)
@click.option(
    "--max-page-bytes",
    metavar="BYTES",
    type=int,
    default=8 << 20,
    show_default=True,
    help="Largest batch of `pages`, compressed. Outputs take 16 MiB.",
)
@click.option(
    "--slots",
    metavar="V",
    type=click.Choice(["1", "2", "4", "8", "16", "32", "64"]),
    help="Also create the topics for shards, V of them at most, and let an empty log begin with so many slots. "
    "[default: no shards; a log has 8 slots]",
)
@OUTPUTS
@_JSON
def create_command(
    partitions: int,
    replication: int | None,
    retention: int,
    max_page_bytes: int,
    slots: str | None,
    outputs: str,
    *,
    as_json: bool,
    **broker: Any,
) -> int:
    """Create the missing topics; existing topics are not changed.

    The topic `fingerprints` has one partition and is retained forever: it is the log from which the service
    restores its state. A retention is written as 90s, 30m, 12h, 7d or forever. The exit code is 1 if
    `serve` would refuse a topic that already existed.
    """
    from dedup_service.core.rules.layout import IndexLayout
    from dedup_service.runtime.kafka.control.operator_records import begin_layout
    from dedup_service.runtime.kafka.topics import Layout, OutputMode, check, create

    layout = Layout(
        partitions=partitions,
        replication=replication,
        retention_ms=retention,
        max_page_bytes=max_page_bytes,
        outputs=OutputMode(outputs),
        slots=None if slots is None else int(slots),
    )
    connection, topics = connection_from(broker), topics_from(broker)
    results = create(connection, topics, layout)
    if layout.slots is not None:
        begin_layout(connection, topics, IndexLayout(slots=layout.slots))
    problems = check(connection, topics, layout.outputs)
    if as_json:
        _echo({"topics": [_created_json(result) for result in results], "problems": list(map(asdict, problems))})
    else:
        _table("Topics", ("topic", "partitions", "replicas", "kept for", "now"), map(_created_row, results))
        _print_problems([problem for problem in problems if problem.fault])
    return _code(problems)


@topics_group.command("check", cls=GroupedCommand, epilog="--bootstrap kafka:9092")
@with_options(*BROKER)
@OUTPUTS
@_JSON
def check_command(outputs: str, *, as_json: bool, **broker: Any) -> int:
    """Check the topics, and say what to do about each problem.

    The exit code is 1 if `serve` would refuse the topics.
    """
    from dedup_service.runtime.kafka.topics import OutputMode, check

    topics = topics_from(broker)
    problems = check(connection_from(broker), topics, OutputMode(outputs))
    if as_json:
        _echo({"problems": list(map(asdict, problems))})
    elif problems:
        _print_problems(problems)
    else:
        click.echo(f"All {len(topics.made_for(OutputMode(outputs)))} topics are correct.")
    return _code(problems)


@topics_group.command("repair-transactions", cls=GroupedCommand, epilog="--bootstrap kafka:9092 --dry-run")
@with_options(*BROKER)
@click.option("--dry-run", is_flag=True, help="List the transactions without ending them.")
@_JSON
def repair_transactions_command(*, dry_run: bool, as_json: bool, **broker: Any) -> int:
    """End hanging transactions as their coordinators decided them.

    Use it if readers, or a service, stop at one offset although records arrive behind it. Apache Kafka
    4.3.1 can lose the end marker of a transaction while all replicas of a partition are offline
    (KAFKA-20734).

    The exit code is 1 if the brokers no longer know the outcome of a transaction, which then stays open.
    """
    from dedup_service.runtime.kafka.control.hanging_transactions import find_hanging, repair

    connection = connection_from(broker)
    hanging = find_hanging(connection, topics_from(broker))
    if not dry_run:
        repair(connection, hanging)
    if as_json:
        _echo({"repaired": not dry_run, "transactions": [_hanging_json(transaction) for transaction in hanging]})
    elif hanging:
        columns = ("topic", "partition", "from offset", "written", "by", "decided", "now")
        _table("Hanging transactions", columns, (_hanging_row(transaction, dry_run=dry_run) for transaction in hanging))
    else:
        click.echo("There are no hanging transactions.")
    return ExitCode.FAILED if any(transaction.outcome is None for transaction in hanging) else ExitCode.DONE


def _hanging_json(transaction: "HangingTransaction") -> dict[str, Any]:
    return {**asdict(transaction), "outcome": transaction.outcome and transaction.outcome.value}


def _hanging_row(transaction: "HangingTransaction", *, dry_run: bool) -> tuple[str, ...]:
    topic, partition, offset = transaction.topic, f"{transaction.partition}", f"{transaction.offset}"
    written = datetime.fromtimestamp(transaction.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    decided = "unknown" if transaction.outcome is None else transaction.outcome.value
    now = "open" if dry_run else "ended"
    if transaction.outcome is None:
        now = "open: abort it (kafka-transactions.sh abort) and publish its records again"
    return topic, partition, offset, written, transaction.transactional_id, decided, now


def _code(problems: Sequence["TopicProblem"]) -> int:
    return ExitCode.FAILED if any(problem.fault for problem in problems) else ExitCode.DONE


def _created_json(result: "TopicCreation") -> dict[str, Any]:
    differences = {name: {"found": found, "wanted": wanted} for name, (found, wanted) in result.differences.items()}
    return {**asdict(result.plan), "created": result.created, "differences": differences}


def _created_row(result: "TopicCreation") -> tuple[str, ...]:
    topic = result.existing or result.plan
    differs = ", ".join(f"{name} {found}, not {wanted}" for name, (found, wanted) in result.differences.items())
    existed = f"existed, not changed: {differs}" if differs else "existed"
    kept = format_duration_ms(int(topic.settings["retention.ms"]))
    return topic.name, f"{topic.partitions}", f"{topic.replication}", kept, "created" if result.created else existed


def _print_problems(problems: Sequence["TopicProblem"]) -> None:
    if problems:
        rows = ((p.topic, p.setting, p.found, p.wanted, p.advice, "refused" if p.fault else "note") for p in problems)
        _table("Problems", ("topic", "setting", "is", "should be", "what to do", "severity"), rows)


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
