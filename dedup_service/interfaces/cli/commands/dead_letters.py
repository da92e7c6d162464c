"""`twinsieve dead-letters`: list the records that a service rejected, and publish them again."""

from typing import Any, BinaryIO

import click
import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import BROKER, connection_from, topics_from, with_options
from dedup_service.interfaces.terminal_safe import terminal_safe


@click.group("dead-letters")
def dead_letters_group() -> None:
    """List the dead letters of a service, and publish them again."""


@dead_letters_group.command("list", cls=GroupedCommand, epilog="--bootstrap localhost:9092 --json")
@with_options(*BROKER)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each, with the whole record.")
def list_command(*, as_json: bool, **broker: Any) -> None:
    """List the records in `pages.dlq`: where each is, where it was published, and why it is there."""
    from dedup_service.runtime.kafka.control.dead_letters import dead_letters

    for one in dead_letters(connection_from(broker), topics_from(broker)):
        text = terminal_safe(f"{one.place}, {one.at}, published at {one.published}: {one.error}")
        click.echo(msgspec.json.encode(one) if as_json else text)


@dead_letters_group.command("republish", cls=GroupedCommand, epilog="- --bootstrap localhost:9092")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@with_options(*BROKER)
def republish_command(file: BinaryIO, **broker: Any) -> int:
    """Publish records of dead letters to `pages` again, as they are in FILE, `-` for standard input.

    FILE has lines of `dead-letters list --json`, all or some of them, corrected or not. A record that the service
    would reject again is not published but reported (exit code 3). A page that is published twice is `unchanged`.
    """
    from dedup_service.runtime.kafka.client.producers import append
    from dedup_service.runtime.kafka.control.dead_letters import message_of

    connection, topic = connection_from(broker), topics_from(broker).pages
    number = published = refused = 0
    while lines := file.readlines(16 << 20):  # of about so many bytes
        messages = []
        for line in lines:
            number += 1
            try:
                messages.append(message_of(line, topic))
            except RecordError as error:
                refused += 1
                click.echo(terminal_safe(f"twinsieve: line {number} is not published: {error}"), err=True)
        published += len(append(connection, topic, messages)) if messages else 0
    click.echo(f"{published:,} published to {topic}, {refused:,} not")
    return ExitCode.BAD_RECORDS if refused else ExitCode.DONE
