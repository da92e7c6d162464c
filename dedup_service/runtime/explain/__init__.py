"""Explanations: find what is known of a page and assemble why it has its verdict; `core.explain` has the analysis."""

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
