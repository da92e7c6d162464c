"""What the feeds of our spiders hold: a page, and what was said of it or who is going to say it."""

from dataclasses import dataclass, field
from typing import Any, Self

from dedup_service.core.page import Page

__all__ = ["JudgedItem", "PageItem", "PublishedItem"]


@dataclass(slots=True, kw_only=True)
class PageItem:
    """A page in the form that `twinsieve filter` reads."""

    id: str
    url: str
    canonical_url: str
    title: str
    text: str | None
    lang: str | None = None
    date: str | None = None
    site_name: str | None = None
    keywords: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page, **more: Any) -> Self:
        """Return the item of `page`; more: values of a subclass's own fields."""
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
            **more,
        )


@dataclass(slots=True, kw_only=True)
class JudgedItem(PageItem):
    """A kept page with the keys of its verdict.

    verdict: unique, unchanged, updated or undecided; None where the filter could not be asked.
    The other verdict keys are those of docs/scrapy.md.
    """

    verdict: str | None = None
    duplicate_of: str | None = None
    duplicate_of_url: str | None = None
    distance: dict[str, int | None] | None = None
    score: float | None = None
    reason: str | None = None
    sequence: int | None = None
    space: str | None = None

    @classmethod
    def decided(cls, page: Page, verdict: dict[str, Any] | None) -> Self:
        """Return the item of `page`; `verdict` as the add-on leaves it in `response.meta`."""
        said = {key: value for key, value in (verdict or {}).items() if key not in ("id", "url")}
        return cls.of(page, **said)


@dataclass(slots=True, kw_only=True)
class PublishedItem(PageItem):
    """A page for the service to judge.

    html: the document, in place of `text`, where nothing was extracted from it: the service comes to the same
    end, `undecided`, and whoever stores the page has it whole.
    """

    html: str | None = None
