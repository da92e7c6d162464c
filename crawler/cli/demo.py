"""`twinsieve demo`: a real crawl of a small news site of our own, with the truth beside every verdict.

With --bootstrap the verdicts are those of a service behind a broker (`demo_kafka`); site, crawl and table are the same.
"""

import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from crawler.cli.crawl import PUBLISHING, exit_code, names_a_broker
from crawler.cli.demo_kafka import Answers, ask_the_service
from crawler.cli.feeds import feeds
from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, dashboard_from
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import with_options

__all__ = ["demo_command"]

IN_A_HURRY = {
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    "LOG_LEVEL": "WARNING",
}
"""The site is ours and on this machine, so nobody has to wait; robots.txt is obeyed all the same."""


@click.command(name="demo", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Rows and counts as one JSON document on stdout.")
@click.option("--delay", type=click.FloatRange(0), default=0, help="Seconds between two pages, to watch. [default: 0]")
@click.option("--keep", metavar="DIR", help="Leave the state, the kept pages and the verdicts there.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the site. [default: any free one]")
@click.option("--processes", type=click.IntRange(1), help="Worker processes that extract.")
@click.option("--serve-only", is_flag=True, help="Serve the site until Ctrl-C, for crawlers of your own.")
@with_options(*DASHBOARD, *PUBLISHING)
def demo_command(
    as_json: bool,
    delay: float,
    keep: str | None,
    port: int,
    processes: int | None,
    serve_only: bool,
    dashboard: str | None,
    dashboard_token: str | None,
    **broker: Any,
) -> int:
    """Serve a small news site on localhost, crawl it, and compare every verdict with the truth.

    With --bootstrap the pages are published there, to topics of their own, and a service that is started for the
    purpose decides. With --dashboard the crawl stays open once all is fetched, until Ctrl-C.
    """
    from crawler.demo.server import serve
    from crawler.demo.site import build_site

    publishes = names_a_broker(broker)
    if publishes and dashboard is not None:
        raise click.UsageError("with --bootstrap a service gives the verdicts: start `twinsieve serve --dashboard`")
    dashboard_from({"dashboard": dashboard, "dashboard_token": dashboard_token})  # before anything is crawled
    if keep and (Path(keep) / "state").exists():
        raise ConfigurationError(f"--keep {keep!r} holds a state already, of a site at another port: name a new folder")
    if not serve_only:
        import_module("crawler.running")  # without Scrapy that is all there is to say
    pages = build_site()
    with ExitStack() as stack:
        server = stack.enter_context(serve(pages, port=port))
        if serve_only:
            click.echo(f"{len(pages)} pages at {server.url} until Ctrl-C", err=True)
            threading.Event().wait()
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="twinsieve-demo-")))
        click.echo(f"Crawling {len(pages)} pages at {server.url}", err=True)
        folder.mkdir(parents=True, exist_ok=True)
        chosen = {
            "TWINSIEVE_PROCESSES": processes,
            "TWINSIEVE_DASHBOARD": dashboard,
            "TWINSIEVE_DASHBOARD_TOKEN": dashboard_token,
        }
        settings = (
            IN_A_HURRY
            | {"DOWNLOAD_DELAY": delay}
            | {name: value for name, value in chosen.items() if value is not None}
        )
        starts = f"{server.url},{server.url}daily/live/storm.html?utm_source=evening"  # changes between two visits
        crawl = ask_the_service if publishes else _crawl
        answers = crawl(starts, folder, settings, broker)
    right = _report(answers, pages, as_json=as_json)
    if keep:
        click.echo(f"State, verdicts.jsonl and what else there is are in {folder}", err=True)
    return answers.code or (ExitCode.DONE if right else ExitCode.FAILED)


def _crawl(starts: str, folder: Path, settings: Mapping[str, Any], _broker: Mapping[str, Any]) -> Answers:
    """Crawl from `starts` and decide in this process."""
    from crawler.running import project_settings, run_site
    from crawler.watching import Stay, progress, verdict_lines

    feed = feeds(str(folder / "pages.jsonl"), resume=False)
    chosen = project_settings({**settings, "TWINSIEVE_STATE": str(folder / "state"), "FEEDS": feed})
    log = folder / "verdicts.jsonl"
    stay = Stay(lambda: click.echo("All is fetched; the dashboard stays until Ctrl-C", err=True))
    with progress() as show, log.open("wb") as target:
        observers = [show, verdict_lines(target)]
        if "TWINSIEVE_DASHBOARD" in settings:
            observers.append(stay)
        outcome = run_site(chosen, {"urls": starts}, observers)
    verdicts = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    code = ExitCode.DONE if stay.stayed else exit_code(outcome)
    return Answers(code, verdicts, outcome.seconds)


def _report(answers: Answers, pages: Any, *, as_json: bool) -> bool:
    """Tell the answers beside the truth; whether they are right."""
    from crawler.demo.report import agrees, compare, counts, print_rows

    rows, seconds = compare(answers.verdicts, pages), answers.seconds
    right = agrees(rows, pages)
    if as_json:
        summary = {**counts(rows), "agrees": right, "seconds": round(seconds, 3)}
        sys.stdout.write(msgspec.json.encode({"rows": [row.as_dict() for row in rows], **summary}).decode() + "\n")
    else:
        print_rows(rows)
        said = "The answers are those of the truth" if right else "The answers are NOT those of the truth"
        click.echo(f"{said}: {len({row.path for row in rows})} of {len(pages)} addresses have one.")
        click.echo(f"{len(rows) / seconds:.0f} pages/s, {seconds:.1f} s with start-up", err=True)
    return right
