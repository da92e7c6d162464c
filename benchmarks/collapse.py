"""Claim: a crawl that collapses into a few pages is passed on, not dropped, and an ordinary one is not disturbed.

    python -m benchmarks.collapse PAGES [--copies 50000]

PAGES (JSON lines: url, title, text) are an ordinary crawl. Its verdicts with and without guards are compared: they
should be the same. Then, after its first half, broken pages come, two for each ordinary one:

    wall      one consent page under one title, on as many hosts as pages
    frame     one site's frame in place of its articles, each under an article's title
    error     one error page under one title, at as many addresses of one host
    frames    a hundred sites' frames, each under articles' titles, taking turns
    wire      no fault: one story on 400 hosts, a sixth of them with a headline of their own
    mirror    no fault: the first half once more, from another host

Shown for each: copies called `duplicate` (with the action `drop`: lost), copies left undecided, by guard, and ordinary
pages whose verdict is another one than without the broken pages. Nothing is drawn by chance.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dedup_service.core.decision.decider import Decider
from dedup_service.core.evidence.packed import pack_evidence
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.text.normalise import fold, letters
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.resources import build_fingerprinter

BROKEN = (
    "Before you go on, {site} would like to store cookies on your device and to read what others have stored there. "
    "Choose which partners may do so, or accept all of them; you can change your mind on the page about privacy. "
    "Subscribers read without advertising. Sign in if you have an account already, or write to the service desk."
)


class CollapseNames:
    """Names of pages by their place."""

    def __init__(self, pages: Sequence[PreparedPage]) -> None:
        self._pages = pages

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`."""
        page = self._pages[sequence - 1].page
        return page.id, page.url


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--copies", type=int, default=50_000)
    arguments = parser.parse_args()
    ordinary = prepared_pages(arguments.pages)
    rule = rule_for()
    alone = verdicts(rule, ordinary)
    same = alone == verdicts(replace(rule, guards=NO_GUARDS), ordinary)
    console = Console()
    console.print(f"{len(ordinary):,} ordinary pages: verdicts with and without guards are the same: {same}")
    table = Table("what comes", "copies", "duplicate", "undecided, by guard", "ordinary verdicts changed")
    for what, copies in faults(ordinary, arguments.copies):
        table.add_row(what, *row(rule, ordinary, copies, alone))
    console.print(table)


def prepared_pages(path: Path) -> list[PreparedPage]:
    """Return the pages of a file with their fingerprints, their texts forgotten."""
    prepare, pages = build_fingerprinter().prepare, []
    for line in track(path.read_bytes().splitlines(), path.name):
        values = msgspec.json.decode(line)
        url = values["url"]
        page = Page(url=url, canonical_url=canonicalise(url), id=url, title=values["title"] or "", text=values["text"])
        pages.append(replace(prepare(page), page=replace(page, text="")))
    return pages


def verdicts(rule: MatchRule, pages: Sequence[PreparedPage]) -> list[Verdict]:
    """Return the verdicts on pages in their order."""
    decider = Decider(rule, "space", CollapseNames(pages))
    return [decider.decide(at, page).verdict for at, page in enumerate(pages, start=1)]


def faults(ordinary: Sequence[PreparedPage], number: int) -> Iterator[tuple[str, list[PreparedPage]]]:
    """Yield what goes wrong, and its pages."""
    titles = [page.page.title for page in ordinary if page.page.title]
    one, sites = frame("site"), [frame(f"site {at}") for at in range(100)]
    yield "wall", [placed(one, f"https://host{at}.example/a/{at}", "before you go on") for at in range(number)]
    yield "frame", [placed(one, f"https://site.example/{at}", titles[at % len(titles)]) for at in range(number)]
    yield "error", [placed(one, f"https://site.example/{at}", "an error") for at in range(number)]
    turns = ((at, titles[at % len(titles)]) for at in range(number))
    yield "frames", [placed(sites[at % 100], f"https://site{at % 100}.example/{at}", title) for at, title in turns]
    story = "the harbour is to be closed in winter"
    heads = (titles[at] if at % 6 == 5 else f"{story} paper {at}" for at in range(400))
    yield "wire", [placed(one, f"https://paper{at}.example/wire", head) for at, head in enumerate(heads)]
    half = ordinary[: len(ordinary) // 2]
    yield "mirror", [moved(page, f"https://mirror.example/{at}") for at, page in enumerate(half)]


def frame(site: str) -> PreparedPage:
    """Return a page that a site gives in place of any other."""
    text = BROKEN.format(site=site) + "".join(f" {site} has {site} in part {at}." for at in range(12))
    return build_fingerprinter().prepare(Page(url="", canonical_url="", id="", text=text))


def placed(page: PreparedPage, url: str, title: str) -> PreparedPage:
    """Return a page at another address under a title."""
    return replace(moved(page, url), evidence=evidence(page.page.text, title))


@cache
def evidence(text: str, title: str) -> bytes:
    """Return the evidence of a text under a title."""
    folded = fold(text)
    return pack_evidence(fold(title), folded, letters(folded), b"")


def moved(page: PreparedPage, url: str) -> PreparedPage:
    """Return a page at another address."""
    return replace(page, page=replace(page.page, url=url, canonical_url=url, id=url))


def row(
    rule: MatchRule, ordinary: Sequence[PreparedPage], copies: list[PreparedPage], alone: list[Verdict]
) -> list[str]:
    """Return the figures of a crawl in whose second half the copies come."""
    half = len(ordinary) // 2
    rest, broken = ordinary[half:], iter(copies)
    turns = ((page, *islice(broken, 2)) for page in rest)
    pages = [*ordinary[:half], *chain.from_iterable(turns), *broken]
    mine = {id(page) for page in copies}
    said = list(zip(pages, verdicts(rule, pages), strict=True))
    kinds = Counter(verdict.kind.value for page, verdict in said if id(page) in mine)
    guards = Counter(verdict.guard.value for page, verdict in said if id(page) in mine and verdict.guard)
    before = (verdict for page, verdict in said if id(page) not in mine)
    changed = sum(one.kind is not other.kind for one, other in zip_longest(before, alone) if one and other)
    by_guard = ", ".join(f"{guard} {count:,}" for guard, count in guards.most_common()) or "0"
    return [f"{len(copies):,}", f"{kinds['duplicate']:,}", by_guard, f"{changed:,}"]


if __name__ == "__main__":
    main()
