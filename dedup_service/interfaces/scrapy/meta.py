"""How the add-on passes on its results: the signal `page_judged`, and the verdict and page in `request.meta`.

The verdict there also names the page's group. A group is a kept page with its copies and further visits; it is called
by the canonical URL of the kept page, which also stands for it (the policy `earliest`).

Scrapy passes `request.meta` to the spider as `response.meta`, and spiders pass it on to further requests
(`meta=response.meta`). A verdict must not travel with it, so `forget` removes an old one. What a spider itself says
there stays: `False` in place of a verdict skips the page, also after redirects and retries.
"""

from typing import TYPE_CHECKING, Any

from dedup_service.core.errors import RecordError
from dedup_service.core.page import Page
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.verdict_json import verdict_dict

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

VERDICT_KEY = "twinsieve"
PAGE_KEY = "twinsieve_page"
LATE_KEY = "twinsieve_late"
LATE_FLAG = "twinsieve-late"

page_judged = object()
"""Signal sent after each verdict, with `verdict` (as in `request.meta["twinsieve"]`), `request`, `response`, `item` and
`late`. item: the one that was judged; None for a page. request, response: None for an item of `Spider.start()`.
late: True if the page or item had passed by then, so that the verdict is nowhere else."""


def grouped_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values, with the page's group and the page that stands for it.

    A page that is kept, or that cannot be judged, is in a group of its own.
    """
    other = None if verdict.kind in (VerdictKind.UNIQUE, VerdictKind.UNDECIDED) else verdict.duplicate_of_url
    canonical = other or verdict.url
    try:
        group = canonicalise(canonical)
    except RecordError:  # of a page that was given to the state with an id for an address
        group = canonical
    return {**verdict_dict(verdict), "group": group, "canonical": canonical}


def forget(request: "Request") -> None:
    """Remove what belongs to another response, in case a spider copied its meta."""
    for key in (VERDICT_KEY, PAGE_KEY, LATE_KEY):
        if request.meta.get(key) is not False:
            request.meta.pop(key, None)


def is_skipped(request: "Request | None") -> bool:
    """Whether the spider wants no verdict on this page, nor on its items: `request.meta["twinsieve"] = False`."""
    return request is not None and request.meta.get(VERDICT_KEY) is False


def verdict_of(response: "Response | None") -> dict[str, Any] | None:
    """Return the verdict on `response`, or None if it has none (not a page, skipped, late, the filter failed)."""
    if response is None or response.request is None:
        return None
    return response.request.meta.get(VERDICT_KEY) or None


def page_of(response: "Response") -> Page | None:
    """Return the extracted page of `response`, or None if it was not stored or extraction failed."""
    page: Page | None = None if response.request is None else response.request.meta.get(PAGE_KEY)
    return page


def flag_of(verdict: dict[str, Any]) -> str:
    """Return the response flag of a verdict (`twinsieve-duplicate`); Scrapy shows flags in its log."""
    return f"twinsieve-{verdict['verdict']}"
