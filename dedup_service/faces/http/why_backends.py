"""Whom `/api/why` and `/api/corrections` ask: the filter in this process, or the service's log."""

from functools import cache, partial
from typing import TYPE_CHECKING

from dedup_service.faces.http.why_routes import WhyBackend
from dedup_service.runtime.embedded import NearDuplicateFilter
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.why import Explainer
from dedup_service.runtime.why.correcting import LiveCorrections
from dedup_service.runtime.why.journal import live_pages

if TYPE_CHECKING:
    from dedup_service.faces.http.dashboard import Watched
    from dedup_service.runtime.kafka.client.settings import Connection
    from dedup_service.runtime.kafka.service import Service
    from dedup_service.runtime.kafka.topics import Topics
    from dedup_service.runtime.kafka.why.serving import Recent

__all__ = ["backend_of"]


def backend_of(watched: "Watched") -> WhyBackend | None:
    """Return who answers for `watched`; None where there is nobody to ask."""
    if watched.sieve is not None:
        return _embedded(watched.sieve)
    if watched.service is None or watched.connection is None or watched.topics is None or watched.recent is None:
        return None
    return _served(watched.service, watched.connection, watched.topics, watched.recent)


def _embedded(sieve: NearDuplicateFilter) -> WhyBackend:
    pages = cache(partial(live_pages, sieve))
    fingerprinter = partial(build_fingerprinter, sieve.options)
    return WhyBackend(lambda: Explainer(pages(), fingerprinter), lambda: LiveCorrections(sieve, pages()))


def _served(service: "Service", connection: "Connection", topics: "Topics", recent: "Recent") -> WhyBackend:
    from dedup_service.runtime.kafka.why.serving import ServedCorrections, ServedPages

    made: list[ServedPages] = []

    def pages() -> ServedPages:
        if not made:
            made.append(ServedPages(service, connection, topics, recent))
        return made[0]

    def close() -> None:
        for each in made:
            each.close()

    fingerprinter = partial(build_fingerprinter, service.space_options)
    return WhyBackend(
        lambda: Explainer(pages(), fingerprinter), lambda: ServedCorrections(pages(), connection, topics), close
    )
