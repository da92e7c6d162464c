"""twinsieve: a streaming near-duplicate filter for web crawlers.

    from dedup_service import NearDuplicateFilter, extract, to_page

    with NearDuplicateFilter.open("state") as sieve:
        verdict = sieve.check(to_page(extract(html), url))

The names below are loaded when they are first used, so that `twinsieve --help` and a settings file that
only names the Scrapy add-on import nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dedup_service.core.extraction import extract, to_page
    from dedup_service.core.page import Page
    from dedup_service.core.rules.profiles import rule_for
    from dedup_service.core.rules.rule import MatchRule
    from dedup_service.core.verdict import Action, Distance, Verdict, VerdictKind
    from dedup_service.runtime.embedded.filter import NearDuplicateFilter
    from dedup_service.runtime.resources import SpaceOptions

__all__ = [
    "Action",
    "Distance",
    "MatchRule",
    "NearDuplicateFilter",
    "Page",
    "SpaceOptions",
    "Verdict",
    "VerdictKind",
    "extract",
    "rule_for",
    "to_page",
]

_HOMES = {
    "dedup_service.core.extraction": ("extract", "to_page"),
    "dedup_service.core.page": ("Page",),
    "dedup_service.core.rules.profiles": ("rule_for",),
    "dedup_service.core.rules.rule": ("MatchRule",),
    "dedup_service.core.verdict": ("Action", "Distance", "Verdict", "VerdictKind"),
    "dedup_service.runtime.embedded.filter": ("NearDuplicateFilter",),
    "dedup_service.runtime.resources": ("SpaceOptions",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
