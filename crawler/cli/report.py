"""What a crawl did, in numbers: read from Scrapy's stats, told as a table or as one line of JSON, on stderr."""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from dedup_service.core.verdict import VerdictKind

__all__ = ["STEPS", "print_report", "summary_of"]

STEPS = ("queue", "preparation", "decision")
"""What a page waits for: a free place, a worker (extraction, segmentation, fingerprint), its verdict."""


def summary_of(stats: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the numbers of a crawl as plain values."""
    pages = stats.get("neardup/page_count", 0)
    return {
        "pages": pages,
        "verdicts": {kind.value: stats.get(f"neardup/verdict_count/{kind.value}", 0) for kind in VerdictKind},
        "kept": stats.get("item_scraped_count", 0),
        "items_dropped": stats.get("neardup/item_dropped_count", 0),
        "requests": stats.get("downloader/request_count", 0),
        "responses": stats.get("downloader/response_count", 0),
        "errors": _prefixed(stats, "neardup/error_count/"),
        "download_errors": stats.get("downloader/exception_count", 0),
        "seconds": round(seconds, 3),
        "pages_per_second": round(pages / seconds, 2) if seconds else 0.0,
        "seconds_by_step": {step: round(stats.get(f"neardup/seconds/{step}", 0.0), 3) for step in STEPS},
        "finish_reason": stats.get("finish_reason"),
    }


def print_report(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the summary to stderr, where it cannot mix with a feed."""
    if as_json:
        sys.stderr.write(msgspec.json.encode(summary).decode() + "\n")
    else:
        _print_table(summary)


def _print_table(summary: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    pages = summary["pages"]
    table = Table(title=f"{pages:,} pages judged", title_justify="left", show_header=False)
    for column in ("what", "how many", "share"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for kind, count in summary["verdicts"].items():
        table.add_row(kind, f"{count:,}", f"{count / pages:.1%}" if pages else "")
    for name, count in summary["errors"].items():
        table.add_row(f"passed on unjudged: {name}", f"{count:,}", "")
    console = Console(stderr=True)
    console.print(table)
    total = sum(summary["seconds_by_step"].values()) or 1.0
    shares = ", ".join(f"{step} {spent / total:.0%}" for step, spent in summary["seconds_by_step"].items())
    console.print(
        f"kept {summary['kept']:,} items, dropped {summary['items_dropped']:,}; {summary['responses']:,} responses in "
        f"{summary['seconds']:.1f} s ({summary['pages_per_second']:.1f} pages/s); a page waited for: {shares}",
        highlight=False,
    )


def _prefixed(stats: Mapping[str, Any], prefix: str) -> dict[str, int]:
    return {key.removeprefix(prefix): value for key, value in sorted(stats.items()) if key.startswith(prefix)}
