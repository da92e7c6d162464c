"""Extraction + address → `Page`: where URLs are canonicalised and rel=canonical is believed or not."""

from dedup_service.core.extraction.value import Extraction
from dedup_service.core.page import Page
from dedup_service.core.url import believed_canonical

__all__ = ["to_page"]


def to_page(extraction: Extraction, url: str, *, id: str | None = None) -> Page:  # noqa: A002 - the word of Page
    """Give what was extracted its address and name.

    url: where the HTML was fetched from, absolute. id: the caller's name for the page; the URL where it is None.
    Raises RecordError where `url` is not an http or https address.
    """
    return Page(
        url=url,
        canonical_url=believed_canonical(url, extraction.canonical_link),
        id=url if id is None else id,
        title=extraction.title,
        text=extraction.text,
        lang=extraction.lang,
        keywords=extraction.keywords,
        tags=extraction.tags,
        site_name=extraction.site_name,
        date=extraction.date,
        problem=extraction.problem,
    )
