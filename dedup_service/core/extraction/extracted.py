"""The result of extraction, and its conversion to a `Page`.

An `Extraction` is a page without its address, so identical HTML at several addresses shares one. `to_page`
adds the address; there URLs are canonicalised, and rel=canonical becomes a claim or is left out.
"""

from dataclasses import dataclass

from dedup_service.core.page import Page
from dedup_service.core.url import page_addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What the HTML of a page says, without its address.

    Attributes:
        title: The headline, without the name of the site if the page shows what that is.
        text: Main text, one line a paragraph; empty if none was found.
        lang: BCP 47 tag, declared or by script; None if neither is conclusive.
        keywords: Keywords that the page states, in page order.
        tags: article:tag and rel=tag links, in page order.
        site_name: Name of the site as the page states it, or None.
        date: Publication date in ISO 8601 (YYYY-MM-DD), from metadata only, or None.
        text_percent: Characters of the main text in 100 of the body, as `Page.text_percent`; None without either.
        canonical_link: rel=canonical as written, not yet resolved or checked (see `core.url`), or None.
        problem: Why there is no text, or None.
    """

    title: str = ""
    text: str = ""
    lang: str | None = None
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    site_name: str | None = None
    date: str | None = None
    text_percent: int | None = None
    canonical_link: str | None = None
    problem: str | None = None


def to_page(extraction: Extraction, url: str, *, id: str | None = None) -> Page:  # noqa: A002 - as in Page
    """Return the page of an extraction, with its address and name.

    Args:
        extraction: What `extract` returned.
        url: The absolute address from which the HTML was fetched.
        id: The caller's name for the page; the URL if it is None.

    Returns:
        The page, with its own canonical URL and the one that it claims.

    Raises:
        RecordError: `url` is not an http or https address.

    Example:
        >>> page = to_page(Extraction(canonical_link="/1"), "http://a.test/1?from=feed")
        >>> page.canonical_url, page.claimed_url
        ('http://a.test/1?from=feed', 'http://a.test/1')
    """
    addresses = page_addresses(url, extraction.canonical_link)
    return Page(
        url=url,
        canonical_url=addresses.canonical_url,
        claimed_url=addresses.claimed_url,
        id=url if id is None else id,
        title=extraction.title,
        text=extraction.text,
        lang=extraction.lang,
        keywords=extraction.keywords,
        tags=extraction.tags,
        site_name=extraction.site_name,
        date=extraction.date,
        text_percent=extraction.text_percent,
        problem=extraction.problem,
    )
