"""What the middlewares leave on a request: the verdict as a plain dict, and the page as it was extracted.

Scrapy hands `request.meta` to the spider as `response.meta`, and spiders hand it on to the requests they
make of it (`meta=response.meta`). A verdict must not travel like that: `forget` takes an old one away.
"""

from typing import TYPE_CHECKING, Any

from dedup_service.core.page import Page

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

__all__ = ["PAGE_KEY", "VERDICT_KEY", "flag_of", "forget", "page_of", "remember", "remember_page", "verdict_of"]

VERDICT_KEY = "twinsieve"
PAGE_KEY = "twinsieve_page"


def remember(request: "Request", verdict: dict[str, Any]) -> None:
    """Leave the verdict on the request that fetched the page."""
    request.meta[VERDICT_KEY] = verdict


def remember_page(request: "Request", page: Page) -> None:
    """Leave the extracted page on the request that fetched it."""
    request.meta[PAGE_KEY] = page


def forget(request: "Request") -> None:
    """Take away what another response left, because a spider copied its meta."""
    request.meta.pop(VERDICT_KEY, None)
    request.meta.pop(PAGE_KEY, None)


def verdict_of(response: "Response | None") -> dict[str, Any] | None:
    """Return the verdict on `response`, or None where it got none (not a page, passed through, no request)."""
    if response is None or response.request is None:
        return None
    verdict: dict[str, Any] | None = response.request.meta.get(VERDICT_KEY)
    return verdict


def page_of(response: "Response") -> Page | None:
    """Return the extracted page of `response`, or None where it was not kept or nothing was found in it."""
    page: Page | None = None if response.request is None else response.request.meta.get(PAGE_KEY)
    return page


def flag_of(verdict: dict[str, Any]) -> str:
    """The flag that marks a response, which Scrapy also shows in its log: `twinsieve-duplicate`."""
    return f"twinsieve-{verdict['verdict']}"
