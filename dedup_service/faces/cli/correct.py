"""`twinsieve correct`: what a person knows better of two pages."""

from typing import Any

import click

from dedup_service.core.changelog import CorrectionRecord
from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.url import canonicalise
from dedup_service.faces.cli.broker_options import BROKER, connection_of, topics_of
from dedup_service.faces.cli.exitcodes import EPILOG, ExitCode
from dedup_service.faces.cli.options import with_options

__all__ = ["correct_command"]


@click.command("correct", epilog=EPILOG)
@click.argument("url")
@click.option("--duplicate-of", metavar="URL", help="The page that it repeats.")
@click.option("--not-duplicate-of", metavar="URL", help="A page that it does not repeat.")
@with_options(*BROKER)
@click.option("--reason", metavar="TEXT", default="corrected by hand", show_default=True, help="Stands in the log.")
def correct_command(url: str, duplicate_of: str | None, not_duplicate_of: str | None, **options: Any) -> int:
    """Tell the service that the page at URL is, or is not, a duplicate of another one.

    The record stands in the log and overrules fingerprints from there on; the last one on a pair holds. A page called a
    duplicate leaves the index. Verdicts given so far stay as they are.
    """
    from dedup_service.runtime.kafka.people import add_records

    of = duplicate_of or not_duplicate_of
    if of is None or (duplicate_of and not_duplicate_of):
        raise click.UsageError("give one of --duplicate-of URL and --not-duplicate-of URL")
    record = CorrectionRecord(_canonical(url), _canonical(of), duplicate_of is not None, options["reason"])
    if record.url == record.of:
        raise click.UsageError(f"both addresses are of one page, {record.url}: its visits are no duplicates")
    (sequence,) = add_records(connection_of(options), topics_of(options), [record])
    verb = "is a duplicate" if record.duplicate else "is no duplicate"
    click.echo(f"sequence {sequence}: {record.url} {verb} of {record.of}")
    return ExitCode.DONE


def _canonical(url: str) -> str:
    try:
        return canonicalise(url)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None
