"""The log that a command's options name, a state folder or a service's log, and the pages that it is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from dedup_service.core.errors import RecordError
from dedup_service.core.url import canonicalise
from dedup_service.interfaces.cli.support.options import bases_from, connection_from, state_folder, topics_from

if TYPE_CHECKING:
    from dedup_service.runtime.explain.page_source import PageSource


@contextmanager
def page_source(options: Mapping[str, Any], wanted: Sequence[str | int]) -> "Iterator[PageSource]":
    """Open the log that the options of TARGET and SERVED_BASES name.

    wanted: URLs and sequences that will be looked up.
    """
    folder = state_folder(options)
    if folder is not None:
        from dedup_service.runtime.explain.journal_pages import state_pages

        with state_pages(folder) as pages:
            yield pages
        return
    from dedup_service.interfaces.cli.support.progress import records_progress
    from dedup_service.runtime.kafka.explain.replayed_log import ReplayedLog

    with records_progress("reading the log") as read:
        log = ReplayedLog(connection_from(options), topics_from(options), wanted, read, bases_from(options))
    with closing(log):
        yield log


def canonical_address(name: str) -> str:
    """Return the canonical form of an address. What is no Web address names a page as it stands; stderr says so."""
    try:
        return canonicalise(name)
    except RecordError:
        click.echo(f"twinsieve: {name[:500]!r} is no Web address, and is taken as it stands", err=True)
        return name.strip()
