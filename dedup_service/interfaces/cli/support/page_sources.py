"""The log that a command's options name, as a source of pages: a state folder, or a service's log read whole."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from dedup_service.interfaces.cli.support.options import connection_of, state_folder, topics_of

if TYPE_CHECKING:
    from dedup_service.runtime.explain import PageSource

__all__ = ["page_source"]


@contextmanager
def page_source(options: Mapping[str, Any], wanted: Sequence[str | int]) -> "Iterator[PageSource]":
    """Yield the log that the options of TARGET name. wanted: addresses and sequences that it will be asked for."""
    folder = state_folder(options)
    if folder is not None:
        from dedup_service.runtime.explain.journal_pages import state_pages

        with state_pages(folder) as pages:
            yield pages
        return
    from dedup_service.interfaces.cli.support.progress import records_progress
    from dedup_service.runtime.kafka.explain.replayed_log import ReplayedLog

    with records_progress("reading the log") as read:
        log = ReplayedLog(connection_of(options), topics_of(options), wanted, read)
    with closing(log):
        yield log
