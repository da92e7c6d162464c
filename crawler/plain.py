"""A page without the filter's help: all text of the document, for the rare page that it could not read.

A page is never lost because our extraction failed, timed out or is switched off.
"""

from scrapy.http import HtmlResponse
from w3lib.html import remove_tags_with_content, replace_entities, replace_tags

from dedup_service.core.page import Page
from dedup_service.core.url import canonicalise

__all__ = ["plain_page"]


def plain_page(response: HtmlResponse) -> Page:
    """Return title and whole text of `response`, tags removed, nothing else."""
    body = remove_tags_with_content(response.text, which_ones=("script", "style", "noscript", "template"))
    return Page(
        id=response.url,
        url=response.url,
        canonical_url=canonicalise(response.url),
        title=(response.css("title::text").get() or "").strip(),
        text=" ".join(replace_entities(replace_tags(body, " ")).split()),
        problem="not extracted",
    )
