"""`twinsieve correct`: what a person knows better of two pages."""

import getpass
import time
from contextlib import nullcontext
from typing import Any

import click

from dedup_service.core.changelog import CorrectionRecord
from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.url import canonicalise
from dedup_service.faces.cli.broker_options import connection_of, topics_of
from dedup_service.faces.cli.exitcodes import EPILOG, ExitCode
from dedup_service.faces.cli.options import with_options
from dedup_service.faces.cli.target import TARGET, state_folder

__all__ = ["correct_command"]


@click.command("correct", epilog=EPILOG)
@click.argument("url")
@click.option("--duplicate-of", metavar="URL", help="The page that it repeats.")
@click.option("--not-duplicate-of", metavar="URL", help="A page that it does not repeat.")
@with_options(*TARGET)
@click.option("--reason", metavar="TEXT", default="corrected by hand", show_default=True, help="Stands in the log.")
@click.option("--by", metavar="NAME", help="Who says so; stands beside it. [default: the user's name]")
def correct_command(url: str, duplicate_of: str | None, not_duplicate_of: str | None, **options: Any) -> int:
    """Say that the page at URL is, or is not, a duplicate of another one.

    The record stands in the log and overrules fingerprints from there on; the last one on a pair holds. A page called a
    duplicate leaves the index. Verdicts given so far stay as they are. A state folder must know both pages (exit code 3
    if not); a service's log takes the record as it is.
    """
    of = duplicate_of or not_duplicate_of
    if of is None or (duplicate_of and not_duplicate_of):
        raise click.UsageError("give one of --duplicate-of URL and --not-duplicate-of URL")
    record = CorrectionRecord(_canonical(url), _canonical(of), duplicate_of is not None, options["reason"])
    if record.url == record.of:
        raise click.UsageError(f"both addresses are of one page, {record.url}: its visits are no duplicates")
    folder, by = state_folder(options), options["by"] or _user()
    if folder is not None:
        return _in_state(folder, record, by)
    from dedup_service.runtime.kafka.people import add_records

    (sequence,) = add_records(connection_of(options), topics_of(options), [record], by=by)
    _tell(sequence, record)
    return ExitCode.DONE


def _in_state(folder: str, record: CorrectionRecord, by: str | None) -> int:
    from dedup_service.runtime.administration import embedded_state
    from dedup_service.runtime.why import UnknownPageError
    from dedup_service.runtime.why.correcting import Said, record_of
    from dedup_service.runtime.why.journal import JournalPages

    said = Said(url=record.url, of=record.of, duplicate=record.duplicate, reason=record.reason)
    with embedded_state(folder) as state:
        journal = state.journal
        pages = JournalPages(lambda: nullcontext(journal.database), journal.header, state.held)
        try:
            correction = state.correct(record_of(said, pages), by=by, at=time.time())
        except UnknownPageError as error:
            click.echo(f"twinsieve: {error}", err=True)
            return ExitCode.BAD_RECORDS
        except RecordError as error:
            raise ConfigurationError(str(error)) from None
    _tell(correction.sequence, correction.record)
    return ExitCode.DONE


def _tell(sequence: int | None, record: CorrectionRecord) -> None:
    verb = "is a duplicate" if record.duplicate else "is no duplicate"
    click.echo(f"sequence {sequence}: {record.url} {verb} of {record.of}")


def _user() -> str | None:
    """The name of whoever runs this, where the system knows it: a container may not."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def _canonical(url: str) -> str:
    try:
        return canonicalise(url)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None
