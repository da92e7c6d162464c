"""`twinsieve dead-letters`: list the records that the service rejected, and publish them again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import BROKER, connection_from, topics_from, with_options
from dedup_service.interfaces.terminal_safe import terminal_safe

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.control.dead_letters import LetterLine

BATCH_BYTES = 16 << 20
"""Lines that are published at a time: the next ones are read once the brokers have these."""


@click.group("dead-letters")
def dead_letters_group() -> None:
    """List the dead letters of a service, and publish them again."""


@dead_letters_group.command("list", epilog=EPILOG)
@with_options(*BROKER)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each, with the whole record.")
def list_command(*, as_json: bool, **broker: Any) -> None:
    """List the records in `pages.dlq`: where each is, where it was published, and why it is there."""
    from dedup_service.runtime.kafka.control.dead_letters import dead_letters

    for letter in dead_letters(connection_from(broker), topics_from(broker)):
        line = f"{letter.place}, {letter.at}, published at {letter.published}: {letter.error}"
        click.echo(msgspec.json.encode(letter) if as_json else terminal_safe(line))


@dead_letters_group.command("republish", epilog=EPILOG)
@click.argument("lines", metavar="FILE", type=click.File("rb"))
@with_options(*BROKER)
def republish_command(lines: BinaryIO, **broker: Any) -> int:
    """Publish records of dead letters to `pages` again, as they are in FILE, `-` for standard input.

    FILE has lines of `dead-letters list --json`, all or some of them, corrected or not. A record that the service
    would reject again is not published but reported (exit code 3). A page that is published twice is `unchanged`.
    """
    from dedup_service.runtime.kafka.control.dead_letters import publish

    connection, topics, published, refused = connection_from(broker), topics_from(broker), 0, 0
    for letters, problems in _batches(lines):
        published += publish(connection, topics, letters)
        refused += len(problems)
        for problem in problems:
            click.echo(terminal_safe(f"twinsieve: {problem}"), err=True)
    click.echo(f"{published:,} published to {topics.pages}, {refused:,} not")
    return ExitCode.BAD_RECORDS if refused else ExitCode.DONE


def _batches(lines: BinaryIO) -> Iterator[tuple[list["LetterLine"], list[str]]]:
    """Yield what may be published, and why other lines may not, for some lines at a time."""
    from dedup_service.runtime.kafka.control.dead_letters import decode_line, refusal

    letters: list[LetterLine] = []
    problems: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        try:
            letter = decode_line(line)
            problem = refusal(letter)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            letter, problem = None, f"no line of `dead-letters list --json`: {error}"
        if letter is None or problem is not None:
            place = f" ({letter.place})" if letter is not None and letter.place else ""
            problems.append(f"line {number}{place} is not published: {problem}")
        else:
            letters.append(letter)
        size += len(line)
        if size >= BATCH_BYTES:
            yield letters, problems
            letters, problems, size = [], [], 0
    yield letters, problems
