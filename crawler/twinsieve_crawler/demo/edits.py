"""Edits that one news site makes to another's story before publishing it as its own.

Each edit is a pure function from story to story; `apply_edits` chains them. The names say what a reader
would see, and appear in the demo's table as the truth about a page.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce

from opencc import OpenCC

from twinsieve_crawler.demo.articles import Article

Edit = Callable[[Article], Article]

ADVERTS = {
    "zh": (
        "【广告】秋季家装节开幕，地板买十平送两平，预约热线见门店海报。",
        "扫码关注本站公众号，回复“早报”每天领取新闻摘要。",
    ),
    "en": (
        "ADVERTISEMENT: Half-price deck boots at Brill & Daughter until Saturday.",
        "Like this story? Get our morning letter, free, six days a week.",
    ),
}
SOURCE_LINES = {
    "zh": "来源：青河日报  责任编辑：何未  转载请注明出处",
    "en": "Story courtesy of the Harbour Courier. Edited for the Wire by the night desk.",
}
TYPOGRAPHY = str.maketrans({"“": "「", "”": "」", "‘": "『", "’": "』", "—": "－"})
ENGLISH_TYPOGRAPHY = str.maketrans({'"': "”", "'": "’", "-": "‐"})


def new_headline(article: Article) -> Article:
    """Replace the headline, keep the body."""
    return replace(article, title=article.headline)


def source_line(article: Article) -> Article:
    """Add a line that names source and editor."""
    return replace(article, source_line=SOURCE_LINES[article.lang])


def adverts(article: Article) -> Article:
    """Add advertisements between the paragraphs."""
    first, second = ADVERTS[article.lang]
    head, tail = article.paragraphs[:2], article.paragraphs[2:]
    return replace(article, paragraphs=(*head, first, *tail, second))


def tail_cut(article: Article) -> Article:
    """Remove the last sentence, as happens for lack of space."""
    last = article.paragraphs[-1]
    stop = "。" if article.lang == "zh" else ". "
    kept = last.rstrip(stop).rsplit(stop, 1)
    shorter = (kept[0] + stop.strip(),) if len(kept) == 2 else ()
    return replace(article, paragraphs=(*article.paragraphs[:-1], *shorter))


def half(article: Article) -> Article:
    """Keep only the first half, as a teaser does."""
    return replace(article, paragraphs=article.paragraphs[: len(article.paragraphs) // 2])


@lru_cache(maxsize=1)
def _traditional_converter() -> OpenCC:
    return OpenCC("s2t")


def traditional(article: Article) -> Article:
    """Convert to traditional characters."""
    convert = _traditional_converter().convert
    return replace(
        article,
        title=convert(article.title),
        headline=convert(article.headline),
        author=convert(article.author),
        source_line=convert(article.source_line),
        tags=tuple(map(convert, article.tags)),
        paragraphs=tuple(map(convert, article.paragraphs)),
    )


def typography(article: Article) -> Article:
    """Replace quotation marks, dashes and the width of digits."""
    if article.lang == "en":
        return replace(article, paragraphs=tuple(p.translate(ENGLISH_TYPOGRAPHY) for p in article.paragraphs))
    wide = {ord("0") + digit: chr(0xFF10 + digit) for digit in range(10)}
    table = {**TYPOGRAPHY, **wide}
    return replace(article, paragraphs=tuple(p.translate(table) for p in article.paragraphs))


EDITS: dict[str, Edit] = {
    "other template": lambda article: article,
    "new headline": new_headline,
    "source line": source_line,
    "adverts": adverts,
    "tail cut": tail_cut,
    "first half only": half,
    "traditional characters": traditional,
    "typography": typography,
}


def apply_edits(article: Article, names: tuple[str, ...]) -> Article:
    """Return `article` after the named edits, in order; KeyError for a name that does not exist."""
    return reduce(lambda story, name: EDITS[name](story), names, article)
