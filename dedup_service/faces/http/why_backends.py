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

__all__ = ["backend_of"]


def backend_of(watched: "Watched") -> WhyBackend | None:
    """Return who answers for `watched`; None where there is nobody to ask."""
    if watched.sieve is not None:
        return _embedded(watched.sieve)
    return None


def _embedded(sieve: NearDuplicateFilter) -> WhyBackend:
    pages = cache(partial(live_pages, sieve))
    fingerprinter = partial(build_fingerprinter, sieve.options)
    return WhyBackend(lambda: Explainer(pages(), fingerprinter), lambda: LiveCorrections(sieve, pages()))
