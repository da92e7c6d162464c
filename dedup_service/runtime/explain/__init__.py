"""Why: finding what is known of a page and putting the explanation together; `core.explain` says what it means."""

from dedup_service.runtime.explain.explainer import Explainer, Explanation, PairExplained
from dedup_service.runtime.explain.page_source import KnownPage, PageSource, UnknownPageError, references_of

__all__ = [
    "Explainer",
    "Explanation",
    "KnownPage",
    "PageSource",
    "PairExplained",
    "UnknownPageError",
    "references_of",
]
