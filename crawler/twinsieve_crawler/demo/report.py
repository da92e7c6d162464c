"""Compares the verdicts on the demo site with the truth, page by page, and prints a table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from twinsieve_crawler.demo.page import DemoPage
from twinsieve_crawler.demo.truth import Agreement, Relation, judge


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """One visited page: its verdict, the truth, and how they compare."""

    path: str
    verdict: str
    target: str | None
    words: int | None
    body: int | None
    score: float | None
    reason: str | None
    relation: str
    note: str
    outcome: Agreement

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def compare(verdicts: Iterable[Mapping[str, Any]], pages: Mapping[str, DemoPage]) -> list[ComparedPage]:
    """Return a row for each verdict on a page of the site, in the order of their sequence numbers."""
    kept: set[str] = set()
    rows = []
    for verdict in sorted(verdicts, key=lambda v: (v["sequence"] is None, v["sequence"])):
        page = pages.get(urlsplit(verdict["url"]).path)
        if page is None:
            continue
        rows.append(_row(verdict, page, pages, kept))
        if verdict["verdict"] == "unique" and page.truth.relation is not Relation.PARTLY:
            kept.add(page.truth.family)
    return rows


def _row(verdict: Mapping[str, Any], page: DemoPage, pages: Mapping[str, DemoPage], kept: set[str]) -> ComparedPage:
    original_url = verdict["duplicate_of_url"]
    target = urlsplit(original_url).path if original_url else None
    target_truth = pages[target].truth if target is not None and target in pages else None
    return ComparedPage(
        path=page.path,
        verdict=verdict["verdict"],
        target=target,
        words=verdict["distance"]["words"],
        body=verdict["distance"]["body"],
        score=verdict["score"],
        reason=verdict["reason"],
        relation=page.truth.relation.value,
        note=page.truth.note,
        outcome=judge(page.truth, verdict["verdict"], target_truth, page.truth.family in kept),
    )


def agrees(rows: Iterable[ComparedPage], pages: Mapping[str, DemoPage]) -> bool:
    """Whether every page of the site has a verdict, no copy was missed, and no other page was called one."""
    visited = list(rows)
    wrong = any(row.outcome in {Agreement.MISSED, Agreement.FALSE_DROP} for row in visited)
    return not wrong and {row.path for row in visited} == set(pages)


def counts(rows: Iterable[ComparedPage]) -> dict[str, dict[str, int]]:
    """Return how many pages got each verdict, and how many verdicts were right, missed and so on."""
    visited = list(rows)
    return {
        "verdicts": dict(Counter(row.verdict for row in visited)),
        "outcomes": {outcome.value: sum(row.outcome is outcome for row in visited) for outcome in Agreement},
    }


def print_rows(rows: Iterable[ComparedPage]) -> None:
    """Print the table: the copies that were found, then the pages that were kept although they look similar."""
    from rich.console import Console
    from rich.table import Table

    visited = list(rows)
    shown = [
        row
        for row in visited
        if row.verdict != "unique"
        or row.outcome is not Agreement.RIGHT
        or ("list" not in row.note and row.note != "original")
    ]
    table = Table(title="Verdict and truth of each page", title_justify="left")
    for name in ("page", "verdict", "of"):
        table.add_column(name, overflow="fold")
    for name in ("words", "body"):
        table.add_column(name, justify="right")
    table.add_column("truth", overflow="fold")
    table.add_column("the verdict is")
    for row in sorted(shown, key=lambda r: (r.verdict != "duplicate", r.verdict, r.path)):
        bits = ("–" if value is None else str(value) for value in (row.words, row.body))
        table.add_row(row.path, row.verdict, row.target or "", *bits, _truth(row), _coloured(row.outcome))
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(table)
    _print_counts(console, visited)


def _truth(row: ComparedPage) -> str:
    plain = row.relation in (Relation.OWN, Relation.ORIGINAL)
    return row.note if plain else f"{row.relation}: {row.note}"


def _coloured(outcome: Agreement) -> str:
    colour = {Agreement.RIGHT: "green", Agreement.MISSED: "red", Agreement.FALSE_DROP: "red"}.get(outcome, "yellow")
    return f"[{colour}]{outcome.value}[/{colour}]"


def _print_counts(console: Any, rows: list[ComparedPage]) -> None:
    summary = counts(rows)
    copies = [row for row in rows if row.verdict == "duplicate" and row.outcome is Agreement.RIGHT]
    missed, wrong = summary["outcomes"]["missed copy"], summary["outcomes"]["false drop"]
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in summary["verdicts"].items())
    console.print(f"{len(rows)} pages: {verdicts}.", highlight=False)
    console.print(
        f"Copies found: {len(copies)} of {len(copies) + missed}. Pages wrongly called a duplicate: {wrong}.",
        highlight=False,
    )
