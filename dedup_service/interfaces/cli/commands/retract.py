"""`twinsieve retract`: remove kept pages that were never stored, or that must be taken down."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.log_records import RetractionRecord
from dedup_service.core.url import canonicalise
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    TARGET,
    connection_from,
    state_folder,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.page_sources import canonical_address
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.embedded.administration import embedded_state
from dedup_service.runtime.embedded.state import State

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.topics import Topics


@click.command("retract", cls=GroupedCommand, epilog="https://example.org/gone --state state --reason 'asked for'")
@click.argument("urls", metavar="URL…", nargs=-1, required=True)
@with_options(*TARGET)
@click.option("--keep-record", is_flag=True, help="With --state: erase nothing; much faster for a large journal.")
@click.option(
    "--reason", metavar="TEXT", default="retracted by hand", show_default=True, help="Reason, stored in the log."
)
def retract_command(urls: tuple[str, ...], **options: Any) -> int:
    """Remove kept pages from the index, so that later copies are unique again, and take them down.

    URL is the address of a page, in any form that has the same canonical URL; `-` reads one URL a line from
    standard input. In a state folder, a page's id also works.

    A state folder reports a page that is not kept (exit code 3). Text, title and URL of the pages are erased from it,
    whether they are kept or not; --keep-record leaves them. The log of a service accepts every
    retraction; for a page that is not kept, it changes nothing. Its processes erase what their state folders have;
    what topics have stays until their retention deletes it.
    """
    folder = state_folder(options)
    references = _read(urls)
    if folder is None:
        return _in_log(references, options)
    with embedded_state(folder) as state:
        erase = not options["keep_record"]
        failed = sum(not _in_state(state, url, options["reason"], erase=erase) for url in references)
        state.erase_mentions()
    return ExitCode.BAD_RECORDS if failed else ExitCode.DONE


def _read(urls: Sequence[str]) -> list[str]:
    """Return the URLs or ids, including those on standard input, each once."""
    lines = (line.removeprefix("\ufeff").strip() for url in urls for line in (sys.stdin if url == "-" else [url]))
    return list(dict.fromkeys(line for line in lines if line))


def _in_log(urls: Sequence[str], options: dict[str, Any]) -> int:
    from dedup_service.runtime.kafka.control.operator_records import add_records

    canonical = list(dict.fromkeys(map(canonical_address, urls)))
    records = [RetractionRecord(url, options["reason"]) for url in canonical]
    sequences = add_records(connection_from(options), topics_from(options), records) if records else []
    for url, sequence in zip(canonical, sequences, strict=True):
        click.echo(f"sequence {sequence}: retraction of {url}")
    if records:
        click.echo(_not_erased(topics_from(options)), err=True)
    return ExitCode.DONE


def _not_erased(topics: "Topics") -> str:
    """Return what the retraction of a service's page does not erase."""
    passing = ", ".join((topics.pages, topics.unique, topics.duplicate, topics.verdicts, topics.dlq))
    return (
        f"not erased: {passing} keep what they have of these pages until their retention deletes it; "
        f"{topics.fingerprints} keeps URL and title for ever, and this record has the URL; stores behind the topics"
    )


def _in_state(state: State, url: str, reason: str, *, erase: bool) -> bool:
    """Retract one page; if no such page is kept, print why and return False."""
    problem: StateError | None = None
    for reference in _references(url):
        try:
            verdict = state.retract(reference, reason, erase=erase, mentions=False)
        except StateError as error:
            if error.retryable:
                raise
            problem = problem or error
        else:
            kept = f"kept at sequence {verdict.sequence}"
            click.echo(terminal_safe(f"sequence {state.journal.sequence}: retraction of {verdict.url}, {kept}"))
            return True
    click.echo(f"twinsieve: {terminal_safe(str(problem))}", err=True)
    return False


def _references(url: str) -> list[str]:
    """Return what may identify the page: the canonical URL of `url`, or `url` as an id."""
    try:
        return list(dict.fromkeys([canonicalise(url), url]))
    except RecordError:
        return [url]
