"""HTML → `Extraction`: the order of the steps, and what stops them (the size limit is in `core.size_limits`).

`main_text` calls trafilatura. Invariant: no HTML raises; an extraction without text gives the reason in `problem`.

The language of a page: as declared, unless its script contradicts.

The script tells Chinese, Japanese and Korean apart, which decides how a text is segmented; a template with
`lang="en"` around a Chinese article is common. A statistical detector (py3langid) was measured and not used:
it takes 0.8 s to load and 1 ms a page, only to tell apart languages in Latin script, which are all segmented
alike.
"""

import re
from dataclasses import replace

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import BINARY, parse, prune, unwrap
from dedup_service.core.extraction.extracted import Extraction
from dedup_service.core.extraction.main_text import main_text, warm_up
from dedup_service.core.extraction.statements import headline, read_statements
from dedup_service.core.size_limits import MAX_PAGE_SIZE, page_too_large
from dedup_service.core.text.encoding import html_as_utf8

SAMPLE_CHARS = 2000
MAX_TAG_CHARS = 100
SCRIPT_SHARE = 0.2
KANA_SHARE = 0.05
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
# Runs of characters are counted together: one match for each character takes twice as long.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile(r"[\u3040-\u30ff]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]+")
_LETTER = re.compile(r"[^\W\d_]+")
SCRIPT_LANGUAGES = ("zh", "ja", "ko")


def declared_language(root: HtmlElement, *stated: str | None) -> str | None:
    """Return the first well-formed tag of <html lang>, xml:lang and `stated`."""
    for value in (root.get("lang"), root.get("xml:lang"), *stated):
        if value and len(tag := value.strip()) <= MAX_TAG_CHARS and _TAG.fullmatch(tag):
            return str(tag).replace("_", "-")
    return None


def language(text: str, declared: str | None) -> str | None:
    """Return the declared tag if the script allows it, else the language of the script, else None.

    >>> language("新闻网站的编辑们", "en"), language("Editors of news sites", "en-GB")
    ('zh', 'en-GB')
    """
    sample = text[:SAMPLE_CHARS]
    letters = _count(_LETTER, sample)
    if not letters:
        return declared
    script = _by_script(sample, letters)
    primary = declared.split("-")[0].lower() if declared else None
    if script is None:
        return None if primary in SCRIPT_LANGUAGES else declared
    return declared if primary == script else script


def _by_script(sample: str, letters: int) -> str | None:
    kana, hangul, han = (_count(pattern, sample) for pattern in (_KANA, _HANGUL, _HAN))
    if hangul >= SCRIPT_SHARE * letters:
        return "ko"
    if kana >= KANA_SHARE * letters and kana + han >= SCRIPT_SHARE * letters:
        return "ja"
    return "zh" if han >= SCRIPT_SHARE * letters else None


def _count(runs: re.Pattern[str], sample: str) -> int:
    return sum(map(len, runs.findall(sample)))


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
    """Return the main text of a page with its links as text, which trafilatura would leave out of a list of them."""
    root = parse(page)
    if root is None:
        return ""
    unwrap(root, "a")
    return main_text(root, len(page))


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
