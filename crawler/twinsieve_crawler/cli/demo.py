"""`twinsieve demo`: crawl a small news site on localhost, and compare every verdict with the truth.

With --bootstrap, a service behind a broker gives the verdicts (`ask_the_service`); site, crawl and table are the
same.
"""

import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, dashboard_from
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import with_options
from dedup_service.runtime.kafka.client.config import Connection
from twinsieve_crawler.cli.crawl import PUBLISHING, exit_code
from twinsieve_crawler.cli.feeds import feeds


@dataclass(frozen=True, slots=True)
class Answers:
    """The result of a demo crawl. verdicts: in the order of their arrival; seconds: wall clock."""

    code: ExitCode
    verdicts: list[dict[str, Any]]
    seconds: float


def ask_the_service(starts: str, folder: Path, settings: Mapping[str, Any], bootstrap: str) -> Answers:
    """Create topics, start a service, crawl from `starts`, publish, and wait for a verdict on every page."""
    from dedup_service.runtime.kafka.topics import Layout, Topics, create
    from twinsieve_crawler.demo.service import DemoService, verdicts_of
    from twinsieve_crawler.running import project_settings, run_site

    connection, topics = Connection(bootstrap), Topics(f"demo-{uuid.uuid4().hex[:8]}.")
    create(connection, topics, Layout(partitions=4))
    click.echo(f"Pages go to {topics.pages} at {connection.bootstrap}, verdicts come from {topics.verdicts}", err=True)
    with DemoService.running(folder, topics.prefix, bootstrap) as service:
        outcome = run_site(
            project_settings(
                {**settings, "TWINSIEVE_KAFKA_BOOTSTRAP": bootstrap, "TWINSIEVE_KAFKA_PREFIX": topics.prefix}
            ),
            {"urls": starts},
        )
        published = outcome.stats.get("twinsieve/published_count", 0)
        click.echo(f"{published} pages published in {outcome.seconds:.1f} s", err=True)
        ended = time.monotonic()
        verdicts = verdicts_of(connection, topics.verdicts, published, service)
    waited_s = time.monotonic() - ended
    click.echo(f"{len(verdicts)} verdicts, the last one {waited_s:.1f} s after the crawl", err=True)
    lines = b"".join(msgspec.json.encode(verdict) + b"\n" for verdict in verdicts)
    (folder / "verdicts.jsonl").write_bytes(lines)
    return Answers(exit_code(outcome), verdicts, outcome.seconds + waited_s)


FAST = {"AUTOTHROTTLE_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "LOG_LEVEL": "WARNING"}
"""The site is local, so the crawl need not be slow; robots.txt is still obeyed."""


@click.command("demo", cls=GroupedCommand, epilog="--dashboard 8080")
@click.option("--json", "as_json", is_flag=True, help="Print rows and counts as one JSON document on standard output.")
@click.option(
    "--delay", metavar="SECONDS", type=click.FloatRange(0), default=0, help="Time between two pages. [default: 0]"
)
@click.option("--keep", "results", metavar="DIR", help="Keep state, pages and verdicts in this new folder.")
@click.option("--serve-only", is_flag=True, help="Only serve the site, until Ctrl-C, for your own crawler.")
@with_options(DASHBOARD, PUBLISHING[0])
def demo_command(
    as_json: bool, delay: float, results: str | None, serve_only: bool, dashboard: str | None, bootstrap: str | None
) -> int:
    """Crawl a small demo site on localhost, and compare every verdict with the truth.

    With --bootstrap, the pages are published to new topics, and a service that is started for the demo
    decides. With --dashboard, the dashboard stays open after the crawl, until Ctrl-C.
    """
    from twinsieve_crawler.demo.server import serve
    from twinsieve_crawler.demo.site import build_site

    if bootstrap and dashboard is not None:
        raise click.UsageError("--dashboard has no effect with --bootstrap: start `twinsieve serve --dashboard`")
    dashboard_from({"dashboard": dashboard})  # checked before the crawl
    if results and (Path(results) / "state").exists():
        raise ConfigurationError(
            f"--keep {results!r} already has a state, of a site at another port: name a new folder"
        )
    if not serve_only:
        import_module("twinsieve_crawler.running")  # fail here if Scrapy is missing
    pages = build_site()
    with ExitStack() as stack:
        server = stack.enter_context(serve(pages))
        if serve_only:
            click.echo(f"{len(pages)} pages at {server.url} until Ctrl-C", err=True)
            threading.Event().wait()
        folder = Path(results or stack.enter_context(tempfile.TemporaryDirectory(prefix="twinsieve-demo-")))
        click.echo(f"Crawling {len(pages)} pages at {server.url}", err=True)
        folder.mkdir(parents=True, exist_ok=True)
        settings = FAST | {"DOWNLOAD_DELAY": delay} | ({} if dashboard is None else {"TWINSIEVE_DASHBOARD": dashboard})
        live = f"{server.url}daily/live/storm.html?utm_source=evening"  # changes between two visits
        starts = f"{server.url},{live}"
        answers = (
            ask_the_service(starts, folder, settings, bootstrap) if bootstrap else _crawl(starts, folder, settings)
        )
    right = _report(answers, pages, as_json=as_json)
    if results:
        click.echo(f"State, verdicts.jsonl and other results are in {folder}", err=True)
    return answers.code or (ExitCode.DONE if right else ExitCode.FAILED)


def _crawl(starts: str, folder: Path, settings: Mapping[str, Any]) -> Answers:
    """Crawl from the URLs `starts`, separated by commas, and decide in this process."""
    from twinsieve_crawler.running import project_settings, run_site
    from twinsieve_crawler.watching import Stay, progress, verdict_lines

    feed = feeds(str(folder / "pages.jsonl"), resume=False)
    chosen = project_settings({**settings, "TWINSIEVE_STATE": str(folder / "state"), "FEEDS": feed})
    log = folder / "verdicts.jsonl"
    stay = Stay(lambda: click.echo("The crawl is complete; the dashboard stays open until Ctrl-C", err=True))
    with progress() as show, log.open("wb") as target:
        observers = [show, verdict_lines(target)]
        if "TWINSIEVE_DASHBOARD" in settings:
            observers.append(stay)
        outcome = run_site(chosen, {"urls": starts}, observers)
    verdicts = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    code = ExitCode.DONE if stay.stayed else exit_code(outcome)
    return Answers(code, verdicts, outcome.seconds)


def _report(answers: Answers, pages: Any, *, as_json: bool) -> bool:
    """Print the answers beside the truth; return whether they agree."""
    from twinsieve_crawler.demo.report import agrees, compare, counts, print_rows

    rows, seconds = compare(answers.verdicts, pages), answers.seconds
    right = agrees(rows, pages)
    if as_json:
        summary = {**counts(rows), "agrees": right, "seconds": round(seconds, 3)}
        sys.stdout.write(msgspec.json.encode({"rows": [row.as_dict() for row in rows], **summary}).decode() + "\n")
    else:
        print_rows(rows)
        agreement = "The verdicts agree with the truth" if right else "The verdicts do NOT agree with the truth"
        click.echo(f"{agreement}: {len({row.path for row in rows})} of {len(pages)} URLs have a verdict.")
        click.echo(f"{len(rows) / seconds:.0f} pages/s, {seconds:.1f} s including start-up", err=True)
    return right
