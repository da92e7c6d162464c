"""Items of our spiders' feeds: a page with its verdict, or a page for a service to decide."""

from dataclasses import dataclass, field
from typing import Any, Self

from dedup_service.core.page import Page


@dataclass(slots=True, kw_only=True)
class PageItem:
    """A page with the fields that `twinsieve filter` reads.

    canonical_url: the address that the page claims, its own if it claims none.
    """

    id: str
    url: str
    canonical_url: str
    title: str
    text: str | None
    lang: str | None = None
    date: str | None = None
    site_name: str | None = None
    text_percent: int | None = None
    keywords: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    @classmethod
    def from_page(cls, page: Page, **more: Any) -> Self:
        """Return the item of `page`. more: values of a subclass's additional fields."""
        return cls(
            id=page.id,
            url=page.url,
            canonical_url=page.claimed_url or page.canonical_url,
            title=page.title,
            text=page.text,
            lang=page.lang,
            date=page.date,
            site_name=page.site_name,
            text_percent=page.text_percent,
            keywords=list(page.keywords),
            tags=list(page.tags),
            references=list(page.references),
            **more,
        )


@dataclass(slots=True, kw_only=True)
class JudgedItem(PageItem):
    """A kept page with the keys of its verdict, as in docs/scrapy.md.

    verdict: unique, unchanged, updated or undecided; None if the filter failed on the page, or was too slow for it.
    group: canonical URL of the page that it repeats, or is a visit of; its own for any other. canonical: that page.
    """

    verdict: str | None = None
    duplicate_of: str | None = None
    duplicate_of_url: str | None = None
    distance: dict[str, int | None] | None = None
    score: float | None = None
    reason: str | None = None
    sequence: int | None = None
    space: str | None = None
    group: str | None = None
    canonical: str | None = None

    @classmethod
    def from_verdict(cls, page: Page, verdict: dict[str, Any] | None) -> Self:
        """Return the item of `page`. verdict: the dict that the add-on leaves in `response.meta`."""
        fields = {key: value for key, value in (verdict or {}).items() if key not in ("id", "url")}
        return cls.from_page(page, **fields)


@dataclass(slots=True, kw_only=True)
class PublishedItem(PageItem):
    """A page for a service to decide.

    html: the document, in place of `text`, if extraction found nothing in it. The service then also says
    `undecided`, and the stored page is complete.
    """

    html: str | None = None
