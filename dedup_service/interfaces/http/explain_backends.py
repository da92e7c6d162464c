"""Whom `/api/why` and `/api/corrections` ask: the filter in this process, or the service's log."""

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from dedup_service.interfaces.http.explain_routes import ExplainBackend
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.explain import Explainer
from dedup_service.runtime.explain.correcting import LiveCorrections
from dedup_service.runtime.explain.journal_pages import live_pages
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.resources import build_fingerprinter

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.client.config import Connection
    from dedup_service.runtime.kafka.explain.live_pages import RecentDecisions
    from dedup_service.runtime.kafka.service import Service
    from dedup_service.runtime.kafka.topics import Topics

__all__ = ["Watched", "backend_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What routes may ask.

    feed: what the facts add up to. sieve: the embedded filter, None in the service. service, connection, topics: of
    the service, None elsewhere. recent: its observer that remembers where pages stand.
    """

    feed: LiveStats
    dedup: NearDuplicateFilter | None = None
    service: "Service | None" = None
    connection: "Connection | None" = None
    topics: "Topics | None" = None
    recent: "RecentDecisions | None" = None


def backend_of(watched: Watched) -> ExplainBackend | None:
    """Return who answers for `watched`; None where there is nobody to ask."""
    if watched.dedup is not None:
        return _embedded(watched.dedup)
    if watched.service is None or watched.connection is None or watched.topics is None or watched.recent is None:
        return None
    return _served(watched.service, watched.connection, watched.topics, watched.recent)


def _embedded(dedup: NearDuplicateFilter) -> ExplainBackend:
    pages = cache(partial(live_pages, dedup))
    fingerprinter = partial(build_fingerprinter, dedup.options)
    return ExplainBackend(lambda: Explainer(pages(), fingerprinter), lambda: LiveCorrections(dedup, pages()))


def _served(
    service: "Service", connection: "Connection", topics: "Topics", recent: "RecentDecisions"
) -> ExplainBackend:
    from dedup_service.runtime.kafka.explain.live_pages import LivePages, LogCorrections

    made: list[LivePages] = []

    def pages() -> LivePages:
        if not made:
            made.append(LivePages(service, connection, topics, recent))
        return made[0]

    def close() -> None:
        for each in made:
            each.close()

    fingerprinter = partial(build_fingerprinter, service.space_options)
    return ExplainBackend(
        lambda: Explainer(pages(), fingerprinter), lambda: LogCorrections(pages(), connection, topics), close
    )
