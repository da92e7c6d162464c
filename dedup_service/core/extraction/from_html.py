"""HTML → `Extraction`: the order of the steps, and what stops them (the size limit is in `core.size_limits`).

`main_text` calls trafilatura. Invariant: no HTML raises; an extraction without text gives the reason in `problem`.
"""

from dataclasses import replace

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import BINARY, parse, prune
from dedup_service.core.extraction.extracted import Extraction
from dedup_service.core.extraction.language import declared_language, language
from dedup_service.core.extraction.main_text import main_text, warm_up
from dedup_service.core.extraction.statements import headline, read_statements
from dedup_service.core.size_limits import MAX_PAGE_SIZE, page_too_large
from dedup_service.core.text.encoding import html_as_utf8

__all__ = ["extract", "warm_up"]

# With less text, pruning may have removed a list that is the page's content: the whole tree is searched.
MIN_TEXT_CHARS = 100
# What lxml and trafilatura may raise on broken markup. MemoryError and signals are not caught.
UNEXPECTED = (etree.LxmlError, ValueError, TypeError, AttributeError, LookupError, RecursionError, AssertionError)
BINARY_SAMPLE_BYTES = 1024
NUL_SHARE = 0.02


def extract(html: bytes | str, *, declared_encoding: str | None = None, max_bytes: int = MAX_PAGE_SIZE) -> Extraction:
    """Return main text, title and metadata of a page, independent of its address.

    Never raises, whatever the content.

    Args:
        html: The body, decompressed; a str is decoded already.
        declared_encoding: An encoding label or a Content-Type header; used for bytes only.
        max_bytes: Limit on the body, in bytes, or in characters of a str; a longer one is not parsed.

    Returns:
        The extraction; its `problem` says why it has no text, if it has none.

    Example:
        >>> extract(b"%PDF-1.7").problem
        'not HTML: PDF data'
    """
    problem = _unreadable(html, declared_encoding, max_bytes)
    if problem is not None:
        return Extraction(problem=problem)
    page = html.encode("utf-8", "replace") if isinstance(html, str) else html_as_utf8(html, declared_encoding)
    if b"<" not in page:
        return Extraction(problem="not HTML: no markup" if page.decode().strip() else "empty page")
    try:
        return _extract_page(page)
    except UNEXPECTED as error:
        return Extraction(problem=f"extraction failed: {type(error).__name__}: {error}"[:300])


def _extract_page(page: bytes) -> Extraction:
    root = parse(page)
    if root is None:
        return Extraction(problem="empty page")
    stated = _metadata(root)
    characters = prune(root)
    article = main_text(root, len(page))
    if len(article) < MIN_TEXT_CHARS:
        article = max(article, _unpruned_text(page), key=len)
    if not article:
        return replace(stated, lang=language(stated.title, stated.lang), problem="no main text")
    share = min(100, round(100 * len(article) / characters)) if characters else None
    return replace(stated, text=article, lang=language(article, stated.lang), text_percent=share)


def _unpruned_text(page: bytes) -> str:
    root = parse(page)
    return "" if root is None else main_text(root, len(page))


def _metadata(root: HtmlElement) -> Extraction:
    """Return the extraction without text; `lang` is as declared."""
    stated = read_statements(root)
    return Extraction(
        title=headline(stated),
        lang=declared_language(root, stated.first("content-language"), stated.first("og:locale")),
        keywords=stated.keywords,
        tags=stated.tags,
        site_name=stated.site_name,
        date=stated.date,
        canonical_link=stated.canonical_link,
    )


def _unreadable(html: bytes | str, declared_encoding: str | None, max_bytes: int) -> str | None:
    """Return why the body is not worth parsing, or None."""
    if (problem := page_too_large(html, max_bytes)) is not None:
        return problem
    if not html.strip():
        return "empty page"
    if isinstance(html, str):
        return None
    for magic, name in BINARY.items():
        if html.startswith(magic):
            return f"not HTML: {name} data"
    wide = html[:2] in {b"\xff\xfe", b"\xfe\xff"} or "utf-16" in (declared_encoding or "").lower()
    sample = html[:BINARY_SAMPLE_BYTES]
    if not wide and sample.count(0) > NUL_SHARE * len(sample):
        return "not HTML: binary data"
    return None
