"""Which exact copies of texts of 20 to 2,000 letters are found, in a crawl of other pages.

All different texts come first, of every length and form. Then each comes again, at another address, in random
order among further pages of the crawl. Below the length from which shingles say enough, the title is part of
the text: a stock phrase under another title is another page.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.quality.assembled import FRESH, Crawl, Library, letters_of
from benchmarks.quality.scale import CrawlPreparer, Filter, stored_library, without_text
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

LENGTHS = (20, 30, 50, 100, 200, 500, 1_000, 2_000)
TEXTS = 200
"""Different texts of each length and form."""

CRAWL, BEFORE = Crawl(0.3, mixed=True), 10_000
"""The crawl around the texts, and its pages before them."""

FORMS = ("same title", "no title", "title lost", "one form", "other title")
"""Titles of text and copy: the same; none; none on the copy; the same, of texts that are 60% the same; another."""

_FORM_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class ShortText:
    """A text and the titles under which it comes first and again."""

    form: str
    letters: int
    number: int
    text: str
    title: str
    title_again: str

    def page(self, *, again: bool) -> Page:
        """Return the first page with the text, or its copy."""
        url = f"https://{'again' if again else 'short'}.example/{self.form.replace(' ', '-')}/{self.letters}/"
        url += str(self.number)
        title = self.title_again if again else self.title
        return Page(url=url, canonical_url=url, id=url, title=title, text=self.text, lang="zh-hans")


@dataclass(frozen=True, slots=True)
class ShortCopies:
    """Of one form and length: copies called duplicates of their text, and different texts called duplicates."""

    form: str
    letters: int
    found: Share
    merged: Share


def texts_of(library: Library, count: int = TEXTS) -> Iterator[ShortText]:
    """Yield `count` different texts of each form and length; no page of a crawl has a sentence of them."""
    place, title = 2 * FRESH, FRESH
    for form in FORMS:
        for letters in LENGTHS:
            common, place = _text(library, place, round(_FORM_SHARE * letters) if form == "one form" else 0)
            for number in range(count):
                own, place = _text(library, place, letters - len(letters_of(common)))
                first, again = library.titles[title], library.titles[title + 1]
                title += 2
                titles = {"no title": ("", ""), "title lost": (first, ""), "other title": (first, again)}
                yield ShortText(form, letters, number, f"{common}{own}。", *titles.get(form, (first, first)))


def _text(library: Library, place: int, letters: int) -> tuple[str, int]:
    """Return a text of exactly so many letters from the sentences at `place`, and the next place."""
    lines: list[str] = []
    wanted = letters
    while wanted > 0:
        line = library.own[place]
        place += 1
        while len(letters_of(line)) > wanted:
            line = line[:-1]
        lines.append(line)
        wanted -= len(letters_of(line))
    return "。\n".join(lines) + "。\n" * bool(lines), place


def short_copies(workspace: Workspace, rule: MatchRule) -> list[ShortCopies]:
    """Return the figures of each form and length under a rule, shortest first."""
    texts = list(texts_of(stored_library(workspace)))
    fingerprinter = build_fingerprinter()
    decided = Filter(rule, fingerprinter.space_id)
    merged, found = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    with CrawlPreparer(workspace) as preparer:
        others = preparer.pages(CRAWL, BEFORE + len(texts))
        for _ in tracked(range(BEFORE), "exact copies: pages before", BEFORE):
            decided.decide(next(others))
        for text in tracked(texts, "exact copies: texts", len(texts)):
            verdict = decided.decide(without_text(fingerprinter, text.page(again=False)))
            merged[text.form, text.letters] += verdict.kind is VerdictKind.DUPLICATE
        for text in tracked(random.Random(SEED).sample(texts, len(texts)), "exact copies: copies", len(texts)):
            verdict = decided.decide(without_text(fingerprinter, text.page(again=True)))
            right = verdict.kind is VerdictKind.DUPLICATE and verdict.duplicate_of == text.page(again=False).id
            found[text.form, text.letters] += right
            decided.decide(next(others))
    return [
        ShortCopies(form, letters, Share(found[form, letters], TEXTS), Share(merged[form, letters], TEXTS))
        for letters in LENGTHS
        for form in FORMS
    ]


def compute(workspace: Workspace) -> list[ShortCopies]:
    """Return the figures with the default profile."""
    return short_copies(workspace, PROFILES[DEFAULT_PROFILE])
