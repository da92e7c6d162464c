"""What the feeds of our spiders hold: a kept page and what was said of it."""

from dataclasses import dataclass, field
from typing import Any, Self

from dedup_service.core.page import Page

__all__ = ["PageItem"]


@dataclass(slots=True, kw_only=True)
class PageItem:
    """One kept page, in the form that `twinsieve filter` reads, with the keys of its verdict.

    verdict: unique, unchanged, updated or undecided; None where the filter could not be asked.
    The other verdict keys are those of docs/scrapy.md.
    """

    id: str
    url: str
    canonical_url: str
    title: str
    text: str
    lang: str | None = None
    date: str | None = None
    site_name: str | None = None
    keywords: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    verdict: str | None = None
    duplicate_of: str | None = None
    duplicate_of_url: str | None = None
    distance: dict[str, int | None] | None = None
    score: float | None = None
    reason: str | None = None
    sequence: int | None = None
    space: str | None = None

    @classmethod
    def of(cls, page: Page, verdict: dict[str, Any] | None) -> Self:
        """Return the item of `page`; `verdict` as the add-on leaves it in `response.meta`."""
        said = {key: value for key, value in (verdict or {}).items() if key not in ("id", "url")}
        return cls(
            id=page.id,
            url=page.url,
            canonical_url=page.canonical_url,
            title=page.title,
            text=page.text,
            lang=page.lang,
            date=page.date,
            site_name=page.site_name,
            keywords=list(page.keywords),
            tags=list(page.tags),
            references=list(page.references),
            **said,
        )
