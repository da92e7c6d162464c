"""Why: finding what is known of a page and putting the explanation together; `core.why` says what it means."""

from dedup_service.runtime.why.explaining import Explainer, Explanation, PairExplained
from dedup_service.runtime.why.pages import KnownPage, PageSource, UnknownPageError, references_of

__all__ = [
    "Explainer",
    "Explanation",
    "KnownPage",
    "PageSource",
    "PairExplained",
    "UnknownPageError",
    "references_of",
]
