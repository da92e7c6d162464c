"""Report what a crawl did, from Scrapy's stats: a table or one line of JSON, on stderr."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dedup_service.core.verdict import VerdictKind

STEPS = ("queue", "preparation", "decision")
"""What a page waits for: a free slot, a worker (extraction, segmentation, fingerprint), its verdict."""

PUBLISHING_STEPS = ("queue", "preparation", "place", "acknowledgement")
"""What a page to publish waits for: a worker, its extraction, room in flight, the acknowledgement."""


def summary_of(stats: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the figures of a crawl that decided its pages, as JSON values.

    late: pages that went on before their verdicts, by `TWINSIEVE_DEADLINE_S`; they are among `verdicts`, too.
    """
    return {
        "pages": stats.get("twinsieve/page_count", 0),
        "verdicts": {kind.value: stats.get(f"twinsieve/verdict_count/{kind.value}", 0) for kind in VerdictKind},
        "late": stats.get("twinsieve/late_count", 0),
        "kept": stats.get("item_scraped_count", 0),
        "items_dropped": stats.get("twinsieve/item_dropped_count", 0),
        **_common(stats, seconds, "twinsieve/page_count", STEPS),
    }


def published_of(stats: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the figures of a crawl that published its pages, as JSON values.

    pages: acknowledged by the brokers. retried: sent again. unpublished: given up, by reason. most_…:
    highest number in flight.
    """
    return {
        "pages": stats.get("twinsieve/published_count", 0),
        "retried": stats.get("twinsieve/publish_retried_count", 0),
        "unpublished": _prefixed(stats, "twinsieve/unpublished_count/"),
        "items_passed": stats.get("twinsieve/item_passed_count", 0),
        "max_pages_in_flight": stats.get("twinsieve/publish_max_pages", 0),
        "max_bytes_in_flight": stats.get("twinsieve/publish_max_bytes", 0),
        **_common(stats, seconds, "twinsieve/published_count", PUBLISHING_STEPS),
    }


def print_report(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the summary to stderr, so that it does not mix with a feed on standard output."""
    if as_json:
        sys.stderr.write(msgspec.json.encode(summary).decode() + "\n")
    elif "verdicts" in summary:
        title = f"{summary['pages']:,} pages decided"
        rows = [*summary["verdicts"].items(), *_errors(summary)]
        if summary["late"]:
            rows.append(("passed on before their verdicts", summary["late"]))
        _print_table(summary, title, rows, f"kept {summary['kept']:,} items, dropped {summary['items_dropped']:,}")
    else:
        title = f"{summary['pages']:,} pages published"
        rows = [("sent again", summary["retried"]), *_errors(summary)]
        rows += [(f"not published: {reason}", count) for reason, count in summary["unpublished"].items()]
        _print_table(summary, title, rows, f"at most {summary['max_pages_in_flight']:,} pages in flight")


def _common(stats: Mapping[str, Any], seconds: float, counted: str, steps: Sequence[str]) -> dict[str, Any]:
    pages = stats.get(counted, 0)
    return {
        "requests": stats.get("downloader/request_count", 0),
        "responses": stats.get("downloader/response_count", 0),
        "errors": _prefixed(stats, "twinsieve/error_count/"),
        "download_errors": stats.get("downloader/exception_count", 0),
        "seconds": round(seconds, 3),
        "pages_per_second": round(pages / seconds, 2) if seconds else 0.0,
        "seconds_by_step": {step: round(stats.get(f"twinsieve/seconds/{step}", 0.0), 3) for step in steps},
        "finish_reason": stats.get("finish_reason"),
    }


def _errors(summary: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(f"passed on after an error: {name}", count) for name, count in summary["errors"].items()]


def _print_table(summary: Mapping[str, Any], title: str, rows: Iterable[tuple[str, int]], headline: str) -> None:
    from rich.console import Console
    from rich.table import Table

    pages = summary["pages"]
    table = Table(title=title, title_justify="left", show_header=False)
    for column in ("what", "how many", "share"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, count in rows:
        table.add_row(name, f"{count:,}", f"{count / pages:.1%}" if pages else "")
    console = Console(stderr=True)
    console.print(table)
    total = sum(summary["seconds_by_step"].values()) or 1.0
    shares = ", ".join(f"{step} {spent / total:.0%}" for step, spent in summary["seconds_by_step"].items())
    console.print(
        f"{headline}; {summary['responses']:,} responses in {summary['seconds']:.1f} s "
        f"({summary['pages_per_second']:.1f} pages/s); a page waited for: {shares}",
        highlight=False,
    )


def _prefixed(stats: Mapping[str, Any], prefix: str) -> dict[str, int]:
    return {key.removeprefix(prefix): value for key, value in sorted(stats.items()) if key.startswith(prefix)}
