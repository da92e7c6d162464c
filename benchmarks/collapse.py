"""Claim: guards do not let a crawl be dropped that collapses into a few pages; other crawls are unchanged.

    python -m benchmarks.collapse PAGES [--copies 50000]

PAGES (JSON lines: url, title, text) is an ordinary crawl. Its verdicts with and without guards are compared:
they should be the same. Then copies are added after its first half, two for each ordinary page:

    wall      one consent page under one title, each on a different host
    frame     one site's frame in place of its articles, each under an article's title
    error     one error page under one title, at different URLs of one host
    frames    the frames of a hundred sites in turn, each under an article's title
    wire      no fault: one story on 400 hosts, a sixth of them with a different headline
    mirror    no fault: the first half again, from another host

Shown for each: copies called `duplicate` (lost with the action `drop`), copies left `undecided`, by guard,
and ordinary pages whose verdict differs from the run without copies. Nothing is random.
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

from benchmarks.prepared_names import PreparedNames
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
    table = Table("copies of", "copies", "duplicate", "undecided, by guard", "ordinary verdicts changed")
    for scenario, copies in scenarios(ordinary, arguments.copies):
        table.add_row(scenario, *row(rule, ordinary, copies, alone))
    console.print(table)


def prepared_pages(path: Path) -> list[PreparedPage]:
    """Return the pages of a file, prepared and without their texts."""
    prepare, pages = build_fingerprinter().prepare, []
    for line in track(path.read_bytes().splitlines(), path.name):
        values = msgspec.json.decode(line)
        url = values["url"]
        page = Page(url=url, canonical_url=canonicalise(url), id=url, title=values["title"] or "", text=values["text"])
        pages.append(replace(prepare(page), page=replace(page, text="")))
    return pages


def verdicts(rule: MatchRule, pages: Sequence[PreparedPage]) -> list[Verdict]:
    """Return the verdicts on pages in their order."""
    decider = Decider(rule, "space", PreparedNames(pages))
    return [decider.decide(at, page).verdict for at, page in enumerate(pages, start=1)]


def scenarios(ordinary: Sequence[PreparedPage], number: int) -> Iterator[tuple[str, list[PreparedPage]]]:
    """Yield each scenario and its copies."""
    titles = [page.page.title for page in ordinary if page.page.title]
    one, sites = frame("site"), [frame(f"site {at}") for at in range(100)]
    yield "wall", [placed(one, f"https://host{at}.example/a/{at}", "before you go on") for at in range(number)]
    yield "frame", [placed(one, f"https://site.example/{at}", titles[at % len(titles)]) for at in range(number)]
    yield "error", [placed(one, f"https://site.example/{at}", "an error") for at in range(number)]
    turns = ((at, titles[at % len(titles)]) for at in range(number))
    yield "frames", [placed(sites[at % 100], f"https://site{at % 100}.example/{at}", title) for at, title in turns]
    story = "the harbour is to be closed in winter"
    heads = (titles[at % len(titles)] if at % 6 == 5 else f"{story} paper {at}" for at in range(400))
    yield "wire", [placed(one, f"https://paper{at}.example/wire", head) for at, head in enumerate(heads)]
    half = ordinary[: len(ordinary) // 2]
    yield "mirror", [moved(page, f"https://mirror.example/{at}") for at, page in enumerate(half)]


def frame(site: str) -> PreparedPage:
    """Return the page that a site serves in place of every article."""
    text = BROKEN.format(site=site) + "".join(f" {site} has {site} in part {at}." for at in range(12))
    return build_fingerprinter().prepare(Page(url="", canonical_url="", id="", text=text))


def placed(page: PreparedPage, url: str, title: str) -> PreparedPage:
    """Return a page at another URL under a title."""
    return replace(moved(page, url), evidence=evidence(page.page.text, title))


@cache
def evidence(text: str, title: str) -> bytes:
    """Return the evidence of a text under a title."""
    folded = fold(text)
    return pack_evidence(fold(title), folded, letters(folded), b"")


def moved(page: PreparedPage, url: str) -> PreparedPage:
    """Return a page at another URL."""
    return replace(page, page=replace(page.page, url=url, canonical_url=url, id=url))


def row(
    rule: MatchRule, ordinary: Sequence[PreparedPage], copies: list[PreparedPage], alone: list[Verdict]
) -> list[str]:
    """Return the figures of a crawl with copies in its second half."""
    half = len(ordinary) // 2
    rest, broken = ordinary[half:], iter(copies)
    turns = ((page, *islice(broken, 2)) for page in rest)
    pages = [*ordinary[:half], *chain.from_iterable(turns), *broken]
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
