"""`twinsieve retract`: kept pages that leave, because they were never stored or must go."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.log_records import RetractionRecord
from dedup_service.core.url import canonicalise
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import TARGET, connection_of, state_folder, topics_of, with_options
from dedup_service.runtime.embedded.administration import embedded_state
from dedup_service.runtime.embedded.state import State

__all__ = ["retract_command"]


@click.command("retract", epilog=EPILOG)
@click.argument("urls", metavar="URL…", nargs=-1, required=True)
@with_options(*TARGET)
@click.option("--reason", metavar="TEXT", default="retracted by hand", show_default=True, help="Stands in the log.")
def retract_command(urls: tuple[str, ...], **options: Any) -> int:
    """Take kept pages out: later copies of them are unique again.

    URL is the address of a page, in any form that leads to its canonical URL; - reads addresses from standard input,
    one a line. In a state folder the page's id will do, too, and a page that is not kept is said so (exit code 3). A
    service's log takes every retraction; of a page that is not kept it changes nothing.
    """
    folder = state_folder(options)
    wanted = _read(urls)
    if folder is None:
        return _in_log(wanted, options)
    with embedded_state(folder) as state:
        failed = sum(not _in_state(state, url, options["reason"]) for url in wanted)
    return ExitCode.BAD_RECORDS if failed else ExitCode.DONE


def _read(urls: Sequence[str]) -> list[str]:
    """The addresses, those on standard input included, each once."""
    lines = (line.strip() for url in urls for line in (sys.stdin if url == "-" else [url]))
    return list(dict.fromkeys(line for line in lines if line))


def _in_log(urls: Sequence[str], options: dict[str, Any]) -> int:
    from dedup_service.runtime.kafka.control.operator_records import add_records

    good: dict[str, str] = {}
    for url in urls:
        try:
            good[canonicalise(url)] = url
        except RecordError as error:
            click.echo(f"twinsieve: {error}", err=True)
    records = [RetractionRecord(url, options["reason"]) for url in good]
    sequences = add_records(connection_of(options), topics_of(options), records) if records else []
    for url, sequence in zip(good, sequences, strict=True):
        click.echo(f"sequence {sequence}: retraction of {url}")
    return ExitCode.DONE if len(good) == len(urls) else ExitCode.BAD_RECORDS


def _in_state(state: State, url: str, reason: str) -> bool:
    """Retract one page; False, and said why, where no such page is kept."""
    problem: StateError | None = None
    for reference in _names(url):
        try:
            verdict = state.retract(reference, reason)
        except StateError as error:
            if error.retryable:
                raise
            problem = problem or error
        else:
            kept = f"kept at sequence {verdict.sequence}"
            click.echo(f"sequence {state.journal.sequence}: retraction of {verdict.url}, {kept}")
            return True
    click.echo(f"twinsieve: {problem}", err=True)
    return False


def _names(url: str) -> list[str]:
    """What the page may be known by: its canonical URL, or what was given as its id."""
    try:
        return list(dict.fromkeys([canonicalise(url), url]))
    except RecordError:
        return [url]
