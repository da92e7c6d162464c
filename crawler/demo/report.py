"""Compare what the filter said about the demo site with what is true, page by page, and tell it as a table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from crawler.demo.page import DemoPage
from crawler.demo.truth import Agreement, Relation, judge

__all__ = ["ComparedPage", "agrees", "compare", "counts", "print_rows"]


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """One visited page: what was said, and what it was worth."""

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
        """The row as plain values."""
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
    of = verdict["duplicate_of_url"]
    target = urlsplit(of).path if of else None
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
    """Whether every page of the site has an answer, no copy was missed and nothing else was called one."""
    held = list(rows)
    wrong = any(row.outcome in {Agreement.MISSED, Agreement.FALSE_DROP} for row in held)
    return not wrong and {row.path for row in held} == set(pages)


def counts(rows: Iterable[ComparedPage]) -> dict[str, dict[str, int]]:
    """Return how many pages got each verdict, and what the verdicts were worth."""
    held = list(rows)
    return {
        "verdicts": dict(Counter(row.verdict for row in held)),
        "outcomes": {outcome.value: sum(row.outcome is outcome for row in held) for outcome in Agreement},
    }


def print_rows(rows: Iterable[ComparedPage]) -> None:
    """Write the table: copies that were found, then everything that was kept although it looks like something else."""
    from rich.console import Console
    from rich.table import Table

    held = list(rows)
    shown = [
        row
        for row in held
        if row.verdict != "unique"
        or row.outcome is not Agreement.RIGHT
        or ("list" not in row.note and row.note != "original")
    ]
    table = Table(title="What was said of each page, and what is true", title_justify="left")
    for name in ("page", "verdict", "of"):
        table.add_column(name, overflow="fold")
    for name in ("words", "body"):
        table.add_column(name, justify="right")
    table.add_column("the truth", overflow="fold")
    table.add_column("so it is")
    for row in sorted(shown, key=lambda r: (r.verdict != "duplicate", r.verdict, r.path)):
        bits = ("–" if value is None else str(value) for value in (row.words, row.body))
        table.add_row(
            row.path,
            row.verdict,
            row.target or "",
            *bits,
            _truth(row),
            _coloured(row.outcome),
        )
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(table)
    _print_counts(console, held)


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
        f"Copies found: {len(copies)} of {len(copies) + missed}. Pages called a duplicate that are none: {wrong}.",
        highlight=False,
    )
