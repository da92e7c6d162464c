"""The headline of a page, without the name of its site where the page itself shows what that is.

How: <title> is what every page has, and most sites append their name to it ("… - Example News"). What a site
shows as headline (og:title, the h1 elements) and begins the <title> too is the headline. Failing that, the
last part of the <title> goes where it is the stated name of the site, or ends in a word that names sites.
Nothing else is cut: a title that is too long still says what the page is about.
"""

import re

from lxml.html import HtmlElement

__all__ = ["headline"]

MAX_HEADLINES = 3
SHORTEST_SHARE = 0.3
MAX_TITLE_CHARS = 500
_SEPARATOR = re.compile(r"\s*[_|｜·»]+\s*|\s+[-–—:]+\s+|\s*[-–—]+\s*(?=[^-–—_|｜]{2,12}$)")
_SITE_WORD = re.compile(
    r"(?:网|网站|新闻|在线|频道|日报|晚报|时报|客户端|中文|\.(?:com|cn|net|org)|news|online)$", re.IGNORECASE
)


def headline(root: HtmlElement, stated: str | None, site_name: str | None) -> str:
    """The headline.

    stated: og:title or its like. site_name: as the page states it. Empty where the page has no title at all.
    """
    full = _clean(root.findtext(".//title"))
    shown = [text for text in (_clean(h1.text_content()) for h1 in list(root.iter("h1"))[:MAX_HEADLINES]) if text]
    candidates = [text for text in (_clean(stated), *shown) if text]
    if not full:
        return candidates[0] if candidates else ""
    for candidate in sorted(candidates, key=len, reverse=True):
        if full.startswith(candidate) and len(candidate) >= SHORTEST_SHARE * len(full):
            return _without_site(candidate, site_name)
    return _without_site(full, site_name)


def _clean(text: str | None) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS] if text else ""


def _without_site(title: str, site_name: str | None) -> str:
    """The title up to the last separators behind which only site names stand."""
    while True:
        ends = list(_SEPARATOR.finditer(title))
        if not ends:
            return title
        last = title[ends[-1].end() :].strip()
        if last and last.casefold() != (site_name or "").casefold() and not _SITE_WORD.search(last):
            return title
        title = title[: ends[-1].start()]
