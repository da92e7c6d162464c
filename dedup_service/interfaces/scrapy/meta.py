"""How the add-on passes on its results: the signal `page_judged`, and the verdict and page in `request.meta`.

Scrapy passes `request.meta` to the spider as `response.meta`, and spiders pass it on to further requests
(`meta=response.meta`). A verdict must not travel with it, so `forget` removes an old one.
"""

from typing import TYPE_CHECKING, Any

from dedup_service.core.page import Page

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

__all__ = [
    "PAGE_KEY",
    "VERDICT_KEY",
    "flag_of",
    "forget",
    "page_judged",
    "page_of",
    "remember",
    "remember_page",
    "verdict_of",
]

VERDICT_KEY = "twinsieve"
PAGE_KEY = "twinsieve_page"

page_judged = object()
"""Signal sent after each verdict, with `verdict` (as in `request.meta["twinsieve"]`), `request`, `response`."""


def remember(request: "Request", verdict: dict[str, Any]) -> None:
    """Store the verdict on the request that fetched the page."""
    request.meta[VERDICT_KEY] = verdict


def remember_page(request: "Request", page: Page) -> None:
    """Store the extracted page on the request that fetched it."""
    request.meta[PAGE_KEY] = page


def forget(request: "Request") -> None:
    """Remove what belongs to another response, in case a spider copied its meta."""
    request.meta.pop(VERDICT_KEY, None)
    request.meta.pop(PAGE_KEY, None)


def verdict_of(response: "Response | None") -> dict[str, Any] | None:
    """Return the verdict on `response`, or None if it has none (not a page, the filter failed, no request)."""
    if response is None or response.request is None:
        return None
    verdict: dict[str, Any] | None = response.request.meta.get(VERDICT_KEY)
    return verdict


def page_of(response: "Response") -> Page | None:
    """Return the extracted page of `response`, or None if it was not stored or extraction failed."""
    page: Page | None = None if response.request is None else response.request.meta.get(PAGE_KEY)
    return page


def flag_of(verdict: dict[str, Any]) -> str:
    """Return the response flag of a verdict (`twinsieve-duplicate`); Scrapy shows flags in its log."""
    return f"twinsieve-{verdict['verdict']}"
