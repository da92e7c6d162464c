"""`twinsieve crawl URL…`: crawl sites politely, and keep each article once or publish every page to Kafka.

No environment variable turns publishing on: one that is set for a service must not turn off the filter of a
crawl.
"""

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, dashboard_from
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import BROKER, PROFILE, connection_from, with_options
from dedup_service.interfaces.cli.support.outputs import OutputError, check_distinct, check_outside, check_writable
from twinsieve_crawler.cli.feeds import feeds

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


if TYPE_CHECKING:
    from twinsieve_crawler.running import CrawlOutcome

UNPUBLISHED = "twinsieve/unpublished_count"
REASONS = {
    "broker_away": "no broker acknowledged them within TWINSIEVE_KAFKA_CLOSE_TIMEOUT_S",
    "refused": "the brokers refused them",
    "too_large": "they are larger than the topic's max.message.bytes",
    "bug": "sending them failed unexpectedly",
}
"""Why pages were not published, by the names of the add-on's stats."""

PUBLISHING = (
    click.option(
        "--bootstrap", metavar="HOST:PORT,…", help="Kafka brokers to publish every page to, instead of deciding here."
    ),
    BROKER[1],
    click.option("--properties", metavar="FILE", help="Properties file of a Kafka client, such as for TLS and SASL."),
)
"""Where to publish; for `with_options`. Unlike BROKER, no environment variable counts."""


def _parse_settings(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001
    settings = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"write NAME=VALUE, got {value!r}")
        settings[name.strip()] = text
    return settings


@click.command("crawl", cls=GroupedCommand, epilog="https://example.org/ -o articles.jsonl --state state --depth 3")
@click.argument("urls", metavar="URL…", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    metavar="FILE|-",
    help="Write the kept pages to FILE (.jsonl, .json, .csv or .xml; also .gz). "
    "[default: -, standard output; none with --bootstrap]",
)
@click.option(
    "--verdicts",
    metavar="FILE",
    help="Write every verdict as one line of JSON, whatever the action (also .gz or .zst).",
)
@click.option(
    "--state", metavar="DIR", help="Keep the state in this folder between crawls. [default: JOBDIR, or in memory]"
)
@click.option(
    "--action",
    type=click.Choice([action.value for action in Action]),
    help="What happens to the response of a duplicate. [default: flag]",
)
@click.option(
    "--depth",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Maximum number of links from a start URL; a canonical URL counts as one. 0 is no limit.",
)
@click.option(
    "--follow",
    type=click.Choice(["links", "sitemap", "both"]),
    default="links",
    show_default=True,
    help="Find pages by links, by the sitemap, or by both.",
)
@click.option(
    "--domains",
    metavar="HOST,…",
    default="",
    help="Hosts to stay on, separated by commas. [default: those of the URLs]",
)
@click.option(
    "--set",
    "overrides",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_settings,
    help="Set any Scrapy setting, such as TWINSIEVE_KEEP=90d or TWINSIEVE_MAX_MEMORY=8G; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary on stderr as one line of JSON.")
@with_options(PROFILE, DASHBOARD, *PUBLISHING)
def crawl_command(
    urls: tuple[str, ...],
    output: str | None,
    verdicts: str | None,
    state: str | None,
    action: str | None,
    depth: int,
    follow: str,
    domains: str,
    overrides: dict[str, str],
    as_json: bool,
    profile: str | None,
    dashboard: str | None,
    **broker: Any,
) -> int:
    """Crawl the sites at each URL, and keep each article once.

    All pages are kept whose verdict is not `duplicate`. With --bootstrap, every page is published to the
    topic `pages` instead, and `twinsieve serve` gives the verdicts.

    The summary goes to stderr. The first Ctrl-C finishes the pages in flight; the second stops at once.
    """
    from dedup_service.runtime.readers.packed import created
    from twinsieve_crawler.running import project_settings, run_site
    from twinsieve_crawler.watching import progress, verdict_lines

    publishes = names_a_broker(broker)
    if publishes:
        verdict_options = {"--verdicts": verdicts, "--state": state, "--action": action, "--profile": profile}
        _refuse_verdict_options(verdict_options | {"--dashboard": dashboard})
    dashboard_from({"dashboard": dashboard})  # checked before the crawl
    output, resume = output or (None if publishes else "-"), "JOBDIR" in overrides
    outputs = {"--output": output, "--verdicts": verdicts}
    check_distinct(**outputs)
    check_outside(state or overrides.get("TWINSIEVE_STATE"), **outputs)
    check_writable(**outputs)
    chosen = {
        "TWINSIEVE_STATE": state,
        "TWINSIEVE_ACTION": action,
        "TWINSIEVE_PROFILE": profile,
        "TWINSIEVE_DASHBOARD": dashboard,
        "LOG_LEVEL": "WARNING",
        "FEEDS": feeds(output, resume=resume) if output else None,
        **(publishing(broker) if publishes else {}),
    }
    settings = project_settings({**{name: value for name, value in chosen.items() if value is not None}, **overrides})
    arguments: dict[str, Any] = {"urls": ",".join(urls), "domains": domains, "depth": depth, "follow": follow}
    with ExitStack() as stack:
        observers = [stack.enter_context(progress())]
        if verdicts:
            observers.append(verdict_lines(stack.enter_context(created(verdicts, append=resume))))
        outcome = run_site(settings, arguments, observers)
    summarise = published_of if settings.get("TWINSIEVE_KAFKA_BOOTSTRAP") else summary_of
    print_report(summarise(outcome.stats, outcome.seconds), as_json=as_json)
    return exit_code(outcome)


def names_a_broker(broker: Mapping[str, Any]) -> bool:
    """Return whether --bootstrap is given. Raises UsageError if only options that need it are."""
    if not broker["bootstrap"] and any(broker.values()):
        raise click.UsageError("--prefix and --properties need --bootstrap HOST:PORT")
    return bool(broker["bootstrap"])


def publishing(broker: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Scrapy settings for the options of PUBLISHING."""
    connection_from(broker)  # checked before the crawl
    return {f"TWINSIEVE_KAFKA_{name.upper()}": value for name, value in broker.items() if value}


def _refuse_verdict_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            raise click.UsageError(
                f"{name} has no effect with --bootstrap: give it to `twinsieve serve`, which decides"
            )


def _raise_output_error(stats: Mapping[str, Any]) -> None:
    """Raise OutputError if feed or verdicts could not be written, BrokenPipeError if their reader went away."""
    from twinsieve_crawler.watching import OUTPUT_ERROR

    error = stats.get(OUTPUT_ERROR)
    if isinstance(error, BrokenPipeError):
        raise error
    if error is not None or any(name.startswith("feedexport/failed_count/") for name in stats):
        why = "see the log above" if error is None else error.strerror
        raise OutputError(f"--output or --verdicts lacks pages: {why}; make room and run the same command again")


def exit_code(outcome: "CrawlOutcome") -> ExitCode:
    """Return the exit code of a crawl; if it failed, print why on stderr. Raises as `_raise_output_error`."""
    unpublished = {reason: count for reason in REASONS if (count := outcome.stats.get(f"{UNPUBLISHED}/{reason}"))}
    for reason, count in unpublished.items():
        click.echo(f"twinsieve: {count} pages were not published: {REASONS[reason]}; see the log above", err=True)
    _raise_output_error(outcome.stats)
    if set(unpublished) - {"too_large"}:
        return ExitCode.FAILED
    if outcome.signum is not None:
        return ExitCode.TERMINATED if outcome.signum == signal.SIGTERM else ExitCode.INTERRUPTED
    if outcome.reason == "twinsieve_state_failed":
        click.echo("twinsieve: the state could not be written, so the crawl was stopped; see the log above", err=True)
        return ExitCode.FAILED
    if outcome.reason == "twinsieve_memory_limit":
        click.echo("twinsieve: the memory limit was reached, so the crawl was stopped; see the log above", err=True)
        return ExitCode.FAILED
    if not outcome.stats.get("downloader/response_status_count/200"):
        click.echo("twinsieve: no page could be fetched; --set LOG_LEVEL=INFO shows why", err=True)
        return ExitCode.FAILED
    return ExitCode.BAD_RECORDS if unpublished else ExitCode.DONE
