"""Claim: guards do not let a crawl be dropped that collapses into a few pages; other crawls are unchanged.

    python -m benchmarks.collapse PAGES [--copies 50000] [--only facets,mirrors]

PAGES (JSON lines: url, title, text) is an ordinary crawl. Its verdicts with and without guards are compared:
they should be the same. Then copies are added after its first half, two for each ordinary page:

    wall      one consent page under one title, each on a different host
    frame     one site's frame in place of its articles, each under an article's title
    error     one error page under one title, at different URLs of one host
    frames    the frames of a hundred sites in turn, each under an article's title
    walls     a hundred sites in turn, each with its own wall under one title at different URLs
    wire      no fault: one story on 400 hosts, a sixth of them with a different headline
    mirror    no fault: the first half again, from another host
    facets    no fault: 500 pages, each under its title at 100 addresses of one host
    untitled  no fault: the same without titles
    print     no fault: a print view of each of 2,000 articles, all under one title
    mirrors   no fault: 500 pages on each of 20 hosts
    cities    no fault: 500 pages on each of 100 hosts

Shown for each: copies called `duplicate` (lost with the action `drop`), copies left `undecided`, by guard,
and ordinary pages whose verdict differs from the run without copies. Nothing is random.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.prepared_names import PreparedNames
from dedup_service.core.decision.decider import Decider
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

BROKEN = (
    "Before you go on, {site} would like to store cookies on your device and to read what others have stored there. "
    "Choose which partners may do so, or accept all of them; you can change your mind on the page about privacy. "
    "Subscribers read without advertising. Sign in if you have an account already, or write to the service desk."
)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--copies", type=int, default=50_000, help="of broken pages")
    parser.add_argument("--only", type=lambda names: names.split(","), help="scenarios to run")
    arguments = parser.parse_args()
    ordinary = prepared_pages(arguments.pages)
    rule = rule_for()
    alone = verdicts(rule, ordinary)
    same = alone == verdicts(replace(rule, guards=NO_GUARDS), ordinary)
    console = Console()
    console.print(f"{len(ordinary):,} ordinary pages: verdicts with and without guards are the same: {same}")
    table = Table("copies of", "copies", "duplicate", "undecided, by guard", "ordinary verdicts changed")
    half = len(ordinary) // 2
    unique = [page for page, verdict in zip(ordinary[:half], alone, strict=False) if verdict.kind is VerdictKind.UNIQUE]
    made: dict[str, Callable[[], list[PreparedPage]]] = {
        **broken(unique, arguments.copies),
        "wire": lambda: wire(unique),
        "mirror": lambda: mirrored(ordinary[:half], 1),
        "facets": lambda: facets(unique[:500], 100),
        "untitled": lambda: facets([retitled(page, "") for page in unique[:500]], 100),
        "print": lambda: print_views(unique[:2000]),
        "mirrors": lambda: mirrored(unique[:500], 20),
        "cities": lambda: mirrored(unique[:500], 100),
    }
    for scenario in arguments.only or made:
        table.add_row(scenario, *row(rule, ordinary, made[scenario](), alone))
    console.print(table)


def prepared_pages(path: Path) -> list[PreparedPage]:
    """Return the pages of a file, prepared."""
    prepare, pages = build_fingerprinter().prepare, []
    for line in track(path.read_bytes().splitlines(), path.name):
        values = msgspec.json.decode(line)
        url = values["url"]
        page = Page(url=url, canonical_url=canonicalise(url), id=url, title=values["title"] or "", text=values["text"])
        pages.append(prepare(page))
    return pages


def verdicts(rule: MatchRule, pages: Sequence[PreparedPage]) -> list[Verdict]:
    """Return the verdicts on pages in their order."""
    decider = Decider(rule, "space", PreparedNames(pages))
    return [decider.decide(at, page).verdict for at, page in enumerate(pages, start=1)]


def broken(ordinary: Sequence[PreparedPage], number: int) -> dict[str, Callable[[], list[PreparedPage]]]:
    """Return what makes the copies of each fault, by its name."""
    titles = [page.page.title for page in ordinary if page.page.title]

    def copies(sites: int, hosts: int, title: str | None) -> list[PreparedPage]:
        return [
            placed(
                frame(f"site {at % sites}", title or titles[at % len(titles)]), f"https://host{at % hosts}.example/{at}"
            )
            for at in range(number)
        ]

    return {
        "wall": lambda: copies(1, number, "before you go on"),
        "frame": lambda: copies(1, 1, None),
        "error": lambda: copies(1, 1, "an error"),
        "frames": lambda: copies(100, 100, None),
        "walls": lambda: copies(100, 100, "before you go on"),
    }


def wire(ordinary: Sequence[PreparedPage]) -> list[PreparedPage]:
    """Return a story on 400 hosts, a sixth of them with the headline of an ordinary page."""
    story = "the harbour is to be closed in winter"
    heads = (page.page.title if at % 6 == 5 else f"{story} paper {at}" for at, page in enumerate(ordinary[:400]))
    return [placed(frame("site", head), f"https://paper{at}.example/wire") for at, head in enumerate(heads)]


def mirrored(pages: Sequence[PreparedPage], hosts: int) -> list[PreparedPage]:
    """Return all pages on one more host, then on the next, under their titles."""
    return [
        placed(page, f"https://mirror{host}.example/{at}") for host in range(hosts) for at, page in enumerate(pages)
    ]


def facets(pages: Sequence[PreparedPage], addresses: int) -> list[PreparedPage]:
    """Return each page at many addresses of one host."""
    return [
        placed(page, f"https://shop.example/{at}?sort={order}")
        for at, page in enumerate(pages)
        for order in range(addresses)
    ]


def print_views(pages: Sequence[PreparedPage]) -> list[PreparedPage]:
    """Return a print view of each page, all under one title."""
    return [placed(retitled(page, "print view"), f"https://site.example/print/{at}") for at, page in enumerate(pages)]


def frame(site: str, title: str) -> PreparedPage:
    """Return the page that a site serves in place of every article, under a title."""
    text = BROKEN.format(site=site) + "".join(f" {site} has {site} in part {at}." for at in range(12))
    return prepared(title, text)


def retitled(page: PreparedPage, title: str) -> PreparedPage:
    """Return the same text under another title."""
    return prepared(title, page.page.text)


@cache
def prepared(title: str, text: str) -> PreparedPage:
    """Return the prepared page of a text under a title, without an address."""
    return _fingerprinter().prepare(Page(url="", canonical_url="", id="", title=title, text=text))


_fingerprinter = cache(build_fingerprinter)


def placed(page: PreparedPage, url: str) -> PreparedPage:
    """Return a page at another URL."""
    return replace(page, page=replace(page.page, url=url, canonical_url=url, id=url))


def row(
    rule: MatchRule, ordinary: Sequence[PreparedPage], copies: list[PreparedPage], alone: list[Verdict]
) -> list[str]:
    """Return the figures of a crawl with copies in its second half."""
    half = len(ordinary) // 2
    rest, more = ordinary[half:], iter(copies)
    turns = ((page, *islice(more, 2)) for page in rest)
    pages = [*ordinary[:half], *chain.from_iterable(turns), *more]
    copy_ids = {id(page) for page in copies}
    decided = list(zip(pages, verdicts(rule, pages), strict=True))
    kinds = Counter(verdict.kind.value for page, verdict in decided if id(page) in copy_ids)
    guards = Counter(verdict.guard.value for page, verdict in decided if id(page) in copy_ids and verdict.guard)
    before = (verdict for page, verdict in decided if id(page) not in copy_ids)
    changed = sum(one.kind is not other.kind for one, other in zip_longest(before, alone) if one and other)
    by_guard = ", ".join(f"{guard} {count:,}" for guard, count in guards.most_common()) or "0"
    return [f"{len(copies):,}", f"{kinds['duplicate']:,}", by_guard, f"{changed:,}"]


if __name__ == "__main__":
    main()
