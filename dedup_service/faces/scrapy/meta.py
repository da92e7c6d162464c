"""What the middlewares leave on a request: the verdict as a plain dict, and whose verdict it is.

Scrapy hands `request.meta` to the spider as `response.meta`, and spiders hand it on to the requests they
make of it (`meta=response.meta`). A verdict must not travel like that: `forget` takes an old one away.
"""

from typing import TYPE_CHECKING, Any

from dedup_service.core.page import Page

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

__all__ = ["PAGE_KEY", "VERDICT_KEY", "flag_of", "forget", "remember", "verdict_of"]

VERDICT_KEY = "neardup"
PAGE_KEY = "neardup_page"


def remember(request: "Request", verdict: dict[str, Any], page: Page | None) -> None:
    """Leave the verdict, and the page where one is given, on the request that fetched it."""
    request.meta[VERDICT_KEY] = verdict
    if page is not None:
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


def flag_of(verdict: dict[str, Any]) -> str:
    """The flag that marks a response, which Scrapy also shows in its log: `neardup-duplicate`."""
    return f"neardup-{verdict['verdict']}"
