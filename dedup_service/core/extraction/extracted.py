"""The value that extraction gives: a page without its address, so that identical bodies share one.

Extraction + address → `Page`: where URLs are canonicalised and rel=canonical is believed or not.
"""

from dataclasses import dataclass

from dedup_service.core.page import Page
from dedup_service.core.url import believed_canonical

__all__ = ["Extraction", "to_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What the HTML alone says.

    title: the headline, without the name of the site where the page shows what that is.
    text: main text, paragraphs on lines of their own; empty where nothing was found.
    lang: BCP 47 tag, declared or by script; None where neither says.
    keywords: the page's own keywords; tags: article:tag and rel=tag links; both in page order.
    date: publication date as ISO 8601 (YYYY-MM-DD), from metadata only.
    canonical_link: rel=canonical as it stands there, not resolved and not yet believed (see `core.url`).
    problem: why there is no text, or None.
    """

    title: str = ""
    text: str = ""
    lang: str | None = None
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    site_name: str | None = None
    date: str | None = None
    canonical_link: str | None = None
    problem: str | None = None


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
