"""What a page states about itself in <meta>, <link> and JSON-LD, and its headline.

Statements, the title and the shown headlines are collected in one pass over those elements. trafilatura's metadata
is not used: at its cheapest it adds half of the extraction's time (it searches the whole tree for author, licence and
category, which nothing here reads); this pass takes 0.2 ms. The date is taken from machine-readable statements only,
never from text: <meta>, JSON-LD, a <time> that is stated to be the date of publication; else <time>, if all of them
have one date. Lists of other articles have others.

The headline is the title without the name of the site, if the page itself shows what that is. Every page has
a <title>, and most sites append their name to it ("… - Example News"). The headline that a site shows
(og:title, the h1 elements) is used if the <title> begins with it. Otherwise the last part of the <title> is
removed if it is the stated name of the site, or ends in a word that names sites. Nothing else is removed: a
title that is too long still says what the page is about.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lxml.html import HtmlElement

from dedup_service.core.dates import iso_date

MAX_JSON_CHARS = 200_000
MAX_TERMS = 50
MAX_TERM_CHARS = 200
"""Of a keyword, tag or name of a site; a longer one is cut."""
TITLES = ("og:title", "headline", "dc.title", "twitter:title")
SITES = ("og:site_name", "application-name", "publisher")
DATES = (
    "article:published_time", "og:published_time", "datepublished", "pubdate", "publishdate", "publish_date",
    "publish-date", "pub_date", "parsely-pub-date", "sailthru.date", "published", "citation_publication_date",
    "dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date", "dcterms.date", "weibo:article:create_at",
    "weibo: article:create_at", "date",
)  # fmt: skip
KEYWORDS = ("keywords", "news_keywords", "citation_keywords", "parsely-tags")
TAGS = ("article:tag", "og:article:tag")
_TERM_END = re.compile(r"[,，、;；|\n]")


@dataclass(slots=True)
class Statements:
    """The statements of a page, in page order.

    metas: values by name, in lower case. full_title: text of the first <title>. shown: texts of the first <h1>.
    times: the first different dates of <time>, two at most.
    """

    metas: dict[str, list[str]] = field(default_factory=dict)
    full_title: str | None = None
    shown: list[str] = field(default_factory=list)
    tag_links: list[str] = field(default_factory=list)
    canonical_links: list[str] = field(default_factory=list)
    times: set[str] = field(default_factory=set)

    def first(self, *names: str) -> str | None:
        """Return the first statement under the first of these names that has one."""
        return next((self.metas[name][0] for name in names if name in self.metas), None)

    @property
    def title(self) -> str | None:
        """The title for sharing, which seldom contains the site's name."""
        return self.first(*TITLES)

    @property
    def site_name(self) -> str | None:
        """The site's name."""
        name = self.first(*SITES)
        return None if name is None else name[:MAX_TERM_CHARS]

    @property
    def date(self) -> str | None:
        """The first stated publication date that is valid, else the one of all <time>, as YYYY-MM-DD."""
        stated = (value for name in DATES for value in self.metas.get(name, ()))
        own = next((day for day in map(iso_date, stated) if day is not None), None)
        return next(iter(self.times)) if own is None and len(self.times) == 1 else own

    @property
    def keywords(self) -> tuple[str, ...]:
        """Stated keywords, each once."""
        return _terms(value for name in KEYWORDS for value in self.metas.get(name, ()))

    @property
    def tags(self) -> tuple[str, ...]:
        """Stated tags and the text of rel=tag links, each once."""
        return _terms([*(value for name in TAGS for value in self.metas.get(name, ())), *self.tag_links])

    @property
    def canonical_link(self) -> str | None:
        """The rel=canonical link; None if there is none, or several that differ."""
        return self.canonical_links[0] if len(set(self.canonical_links)) == 1 else None


def read_statements(root: HtmlElement) -> Statements:
    """Return the statements of a page; those that cannot be parsed are left out."""
    statements = Statements()
    within: HtmlElement | None = None
    for element in root.iter("a", *_READERS):
        tag = element.tag
        if tag != "a":
            _READERS[tag](statements, element)
        elif element.get("rel") == "tag" and not _is_inside(element, within):
            within = element
            statements.tag_links.append(element.text_content())
    return statements


def _read_meta(statements: Statements, element: HtmlElement) -> None:
    names = (element.get(kind) for kind in ("property", "name", "itemprop", "http-equiv"))
    _add(statements, next(filter(None, names), None), element.get("content"))


def _read_link(statements: Statements, element: HtmlElement) -> None:
    if "canonical" in element.get("rel", "").lower().split() and "href" in element.attrib:
        statements.canonical_links.append(element.get("href").strip())


def _read_script(statements: Statements, element: HtmlElement) -> None:
    if element.get("type") == "application/ld+json":
        _read_json(statements, element.text)


def _read_title(statements: Statements, element: HtmlElement) -> None:
    if statements.full_title is None:
        statements.full_title = element.text or ""


def _read_shown_headline(statements: Statements, element: HtmlElement) -> None:
    if len(statements.shown) < MAX_HEADLINES:
        statements.shown.append(element.text_content())


def _read_time(statements: Statements, element: HtmlElement) -> None:
    written, kind = element.get("datetime"), element.get("itemprop")
    if written is None or kind == "dateModified":
        return
    if kind == "datePublished" or "pubdate" in element.attrib:
        _add(statements, "datepublished", written)
    elif len(statements.times) < MAX_TIMES and (day := iso_date(written)) is not None:
        statements.times.add(day)


_READERS: dict[str, Callable[[Statements, HtmlElement], None]] = {
    "meta": _read_meta,
    "link": _read_link,
    "script": _read_script,
    "title": _read_title,
    "h1": _read_shown_headline,
    "time": _read_time,
}


def _is_inside(element: HtmlElement, link: HtmlElement | None) -> bool:
    """Whether the element is inside a link that was read; the text of nested links would be read again and again."""
    return link is not None and any(ancestor is link for ancestor in element.iterancestors("a"))


def _add(statements: Statements, name: str | None, value: object) -> None:
    if name and isinstance(value, str) and (clean := " ".join(value.split())):
        statements.metas.setdefault(name.strip().lower(), []).append(clean)


def _read_json(statements: Statements, text: str | None) -> None:
    """Add headline, date, keywords and publisher of the first article in a JSON-LD block."""
    if not text or len(text) > MAX_JSON_CHARS or "datePublished" not in text:
        return
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return
    article = next((node for node in _nodes(data) if "datePublished" in node), None)
    if article is None:
        return
    _add(statements, "headline", article.get("headline"))
    _add(statements, "datepublished", article.get("datePublished"))
    publisher = article.get("publisher")
    _add(statements, "publisher", publisher.get("name") if isinstance(publisher, dict) else publisher)
    keywords = article.get("keywords")
    for keyword in keywords if isinstance(keywords, list) else [keywords]:
        _add(statements, "keywords", keyword)


def _nodes(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects on the first levels of a JSON-LD block: itself, a list's items, a graph's nodes."""
    for node in data if isinstance(data, list) else [data]:
        if isinstance(node, dict):
            yield node
            graph = node.get("@graph")
            yield from (each for each in (graph if isinstance(graph, list) else ()) if isinstance(each, dict))


def _terms(values: Any) -> tuple[str, ...]:
    terms = (" ".join(term.split())[:MAX_TERM_CHARS] for value in values for term in _TERM_END.split(value))
    return tuple(islice(_distinct(terms), MAX_TERMS))


def _distinct(terms: Iterable[str]) -> Iterator[str]:
    seen = {""}
    for term in terms:
        if term not in seen:
            seen.add(term)
            yield term


MAX_HEADLINES = 3
MAX_TIMES = 2
"""Different dates of <time> that are remembered: two are enough to know that they differ."""
MIN_TITLE_SHARE = 0.3
"""Share of the <title> that a shown headline must have at least."""
MAX_TITLE_CHARS = 500
_SEPARATOR = re.compile(r"\s*[_|｜·»]+\s*|\s+[-–—:]+\s+|\s*[-–—]+\s*(?=[^-–—_|｜]{2,12}$)")
_SITE_WORD = re.compile(
    r"(?:网|网站|新闻|在线|频道|日报|晚报|时报|客户端|中文|\.(?:com|cn|net|org)|news|online)$", re.IGNORECASE
)


def headline(stated: Statements) -> str:
    """Return the headline, empty if the page has no title at all."""
    full = _clean(stated.full_title)
    candidates = [text for text in map(_clean, (stated.title, *stated.shown)) if text]
    if not full:
        return candidates[0] if candidates else ""
    for candidate in sorted(candidates, key=len, reverse=True):
        if full.startswith(candidate) and len(candidate) >= MIN_TITLE_SHARE * len(full):
            return _without_site_name(candidate, stated.site_name)
    return _without_site_name(full, stated.site_name)


def _clean(text: str | None) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS] if text else ""


def _without_site_name(title: str, site_name: str | None) -> str:
    """Return the title without its last parts, as long as these are names of sites."""
    while True:
        ends = list(_SEPARATOR.finditer(title))
        if not ends:
            return title
        last = title[ends[-1].end() :].strip()
        if last and last.casefold() != (site_name or "").casefold() and not _SITE_WORD.search(last):
            return title
        title = title[: ends[-1].start()]
