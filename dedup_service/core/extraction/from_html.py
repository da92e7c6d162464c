"""HTML → `Extraction`, whatever the HTML: the order of the steps, and what stops them.

Invariant: nothing raises; a page without text has a `problem` that names why.
"""

from dataclasses import replace

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import BINARY, parse, prune
from dedup_service.core.extraction.extracted import Extraction
from dedup_service.core.extraction.language import declared_language, language
from dedup_service.core.extraction.main_text import main_text, warm_up
from dedup_service.core.extraction.statements import headline, read_statements
from dedup_service.core.text.encoding import decode_html

__all__ = ["MAX_HTML_BYTES", "extract", "warm_up"]

# The largest page kept is far below; Google indexes 2 MB of HTML, and 10 MB parse in about 0.3 s.
MAX_HTML_BYTES = 10 << 20
# With less text than this the pruned tree may have lost the page's own list: look at all of it.
MIN_TEXT_CHARS = 100
# What lxml and trafilatura raise, or may, on broken markup; MemoryError and signals pass.
UNEXPECTED = (etree.LxmlError, ValueError, TypeError, AttributeError, LookupError, RecursionError, AssertionError)
BINARY_SAMPLE_BYTES = 1024
NUL_SHARE = 0.02


def extract(html: bytes | str, *, declared_encoding: str | None = None, max_bytes: int = MAX_HTML_BYTES) -> Extraction:
    """Main text, title and metadata of a page, independent of its address.

    html: the body, decompressed; a str is taken as decoded already.
    declared_encoding: a label or a Content-Type header; read for bytes only.
    max_bytes: a longer body (bytes, or characters of a str) is not parsed.
    Never raises for any content: see `Extraction.problem`.
    """
    problem = _unreadable(html, declared_encoding, max_bytes)
    if problem is not None:
        return Extraction(problem=problem)
    text = html if isinstance(html, str) else decode_html(html, declared_encoding).text
    if "<" not in text:
        return Extraction(problem="not HTML: no markup" if text.strip() else "empty page")
    try:
        return _extract_text(text)
    except UNEXPECTED as error:
        return Extraction(problem=f"extraction failed: {type(error).__name__}: {error}"[:300])


def _extract_text(text: str) -> Extraction:
    root = parse(text)
    if root is None:
        return Extraction(problem="empty page")
    page = _without_text(root)
    prune(root)
    found = main_text(root)
    if len(found) < MIN_TEXT_CHARS:
        found = max(found, _unpruned_text(text), key=len)
    if not found:
        return replace(page, lang=language(page.title, page.lang), problem="no main text")
    return replace(page, text=found, lang=language(found, page.lang))


def _unpruned_text(text: str) -> str:
    root = parse(text)
    return "" if root is None else main_text(root)


def _without_text(root: HtmlElement) -> Extraction:
    """What the head says; `lang` as declared."""
    stated = read_statements(root)
    return Extraction(
        title=headline(root, stated.title, stated.site_name),
        lang=declared_language(root, stated.first("content-language"), stated.first("og:locale")),
        keywords=stated.keywords,
        tags=stated.tags,
        site_name=stated.site_name,
        date=stated.date,
        canonical_link=stated.canonical_link,
    )


def _unreadable(html: bytes | str, declared_encoding: str | None, max_bytes: int) -> str | None:
    """Why the body is not worth parsing, or None."""
    if len(html) > max_bytes:
        unit = "bytes" if isinstance(html, bytes) else "characters"
        return f"page too large: {len(html)} {unit}, limit {max_bytes}"
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
