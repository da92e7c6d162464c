"""What answers `/api/why`, `/api/corrections` and `/api/group`: the filter in this process, or the service's log."""

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from dedup_service.interfaces.http.explain_routes import ExplainBackend
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.explain.correcting import LiveCorrections
from dedup_service.runtime.explain.explainer import Explainer
from dedup_service.runtime.explain.journal_pages import live_pages
from dedup_service.runtime.groups.live_groups import LiveGroups
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.resources import build_fingerprinter

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.client.config import Connection
    from dedup_service.runtime.kafka.explain.live_pages import RecentDecisions
    from dedup_service.runtime.kafka.service import Service
    from dedup_service.runtime.kafka.topics import Topics
    from dedup_service.runtime.workers.page_reader import PageReader


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSources:
    """Where the dashboard's routes get their data from.

    live_stats: always. dedup: the embedded filter; None in the service. service, connection, topics: in the
    service, else None. recent: the observer of the service that remembers the offsets of recent pages. reader: reads
    the texts of its pages; whoever made it closes it.
    """

    live_stats: LiveStats
    dedup: NearDuplicateFilter | None = None
    service: "Service | None" = None
    connection: "Connection | None" = None
    topics: "Topics | None" = None
    recent: "RecentDecisions | None" = None
    reader: "PageReader | None" = None


def backend_for(sources: DashboardSources) -> ExplainBackend | None:
    """Return the backend for `sources`, or None if they have neither a filter nor a service."""
    if sources.dedup is not None:
        return _embedded(sources.dedup)
    service, connection, topics, recent = sources.service, sources.connection, sources.topics, sources.recent
    if service is None or connection is None or topics is None or recent is None or sources.reader is None:
        return None
    return _served(service, connection, topics, recent, sources.reader)


def _embedded(dedup: NearDuplicateFilter) -> ExplainBackend:
    pages = cache(partial(live_pages, dedup))
    fingerprinter = partial(build_fingerprinter, view_of(dedup).options)
    return ExplainBackend(
        lambda: Explainer(pages(), fingerprinter),
        lambda: LiveCorrections(dedup, pages()),
        groups=partial(LiveGroups, dedup),
    )


def _served(
    service: "Service", connection: "Connection", topics: "Topics", recent: "RecentDecisions", reader: "PageReader"
) -> ExplainBackend:
    from dedup_service.runtime.kafka.explain.live_pages import LivePages, LogCorrections

    opened: list[LivePages] = []

    def pages() -> LivePages:
        if not opened:
            opened.append(LivePages(service, connection, topics, recent, reader))
        return opened[0]

    def close() -> None:
        for live in opened:
            live.close()

    fingerprinter = partial(build_fingerprinter, service.space_options)
    return ExplainBackend(
        lambda: Explainer(pages(), fingerprinter), lambda: LogCorrections(pages(), connection, topics), close
    )
