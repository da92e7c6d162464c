"""Pages with many degrees of similarity."""

import random
from functools import cache

from dedup_service._native import Entry
from dedup_service.core.decision.entries import entry_of_page
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.url import url_hash
from dedup_service.runtime.resources import build_fingerprinter


def edited(seed: int, change: float) -> str:
    """A text of sentences with numbers, a share of them replaced; every fifth text is short."""
    rng = random.Random(seed * 1000 + int(change * 100))
    parts = [f"{sentence(seed * 100 + at)} in {1900 + at}" for at in range(2 if seed % 5 == 0 else 20)]
    return ". ".join(sentence(rng.randrange(10**6)) if rng.random() < change else part for part in parts)


def sentence(seed: int) -> str:
    """A sentence whose words no other seed has."""
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 8))) for _ in range(12))


@cache
def prepared(seed: int, change: float) -> PreparedPage:
    """The page of a seed with a share of its sentences replaced."""
    return prepared_text(f"{seed}/{change}", edited(seed, change), f"Story {seed}")


def prepared_text(path: object, text: str, title: str = "") -> PreparedPage:
    """The page at a path with this text."""
    url = f"https://a.example/{path}"
    page = Page(url=url, canonical_url=url, id=url, title=title, text=text, keywords=("k",))
    return build_fingerprinter().prepare(page)


def entry(sequence: int, page: PreparedPage) -> Entry:
    """The entry of a page."""
    return entry_of_page(sequence, page, url_hash(page.page.canonical_url))


CHANGES = (0.0, 0.02, 0.1, 0.25, 0.4, 0.6, 1.0)


@cache
def pairs() -> list[tuple[PreparedPage, PreparedPage]]:
    """Pairs of a page and the page of the same seed with a share of its sentences replaced."""
    return [(prepared(seed, 0.0), prepared(seed, change)) for seed in range(1, 13) for change in CHANGES]
