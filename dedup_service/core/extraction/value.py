"""The value that extraction gives: a page without its address, so that identical bodies share one."""

from dataclasses import dataclass

__all__ = ["Extraction"]


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
