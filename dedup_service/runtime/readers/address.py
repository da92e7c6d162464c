"""What identifies a page whose address is not of the Web.

Files come with `file:` addresses, archives with `urn:`, hand-made lists with anything. Such an address
identifies its page as it stands, so that two visits are still two visits; only an empty one is an error.
"""

from dataclasses import replace

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, to_page
from dedup_service.core.page import Page
from dedup_service.core.url import believed_canonical

__all__ = ["believed_or_itself", "page_at"]

_ANY_ADDRESS = "http://page.invalid/"  # RFC 2606: never anybody's; replaced before anyone sees it


def believed_or_itself(url: str, link: str | None = None) -> str:
    """Return the canonical URL of the page at `url`, or `url` without white space where it is none of the Web's.

    link: what the page, or whoever fetched it, names as its canonical address (`core.url.believed_canonical`).
    """
    try:
        return believed_canonical(url, link)
    except RecordError:
        return url.strip()


def page_at(extraction: Extraction, url: str, name: str) -> Page:
    """Return the page that `extraction` found at `url`, called `name`, whatever kind of address `url` is."""
    try:
        return to_page(extraction, url, id=name)
    except RecordError:
        page = to_page(extraction, _ANY_ADDRESS, id=name)
        return replace(page, url=url, canonical_url=url.strip())
