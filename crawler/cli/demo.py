"""`twinsieve demo`: a real crawl of a small news site of our own, with the truth beside every verdict."""

import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from crawler.cli.crawl import exit_code
from crawler.cli.feeds import feeds
from dedup_service.core.errors import ConfigurationError
from dedup_service.faces.cli.exitcodes import EPILOG, ExitCode

__all__ = ["demo_command"]

IN_A_HURRY = {
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    "LOG_LEVEL": "WARNING",
}
"""The site is ours and on this machine, so nobody has to wait; robots.txt is obeyed all the same."""


@click.command(name="demo", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Rows and counts as one JSON document on stdout.")
@click.option("--keep", metavar="DIR", help="Leave the state, the kept pages and the verdicts there.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the site. [default: any free one]")
@click.option("--processes", type=click.IntRange(1), help="Worker processes that extract.")
@click.option("--serve-only", is_flag=True, help="Serve the site until Ctrl-C, for crawlers of your own.")
def demo_command(
    as_json: bool,
    keep: str | None,
    port: int,
    processes: int | None,
    serve_only: bool,
) -> int:
    """Serve a small news site on localhost, crawl it, and compare every verdict with the truth."""
    from crawler.demo.server import serve
    from crawler.demo.site import build_site

    if keep and (Path(keep) / "state").exists():
        raise ConfigurationError(f"--keep {keep!r} holds a state already, of a site at another port: name a new folder")
    pages = build_site()
    with ExitStack() as stack:
        server = stack.enter_context(serve(pages, port=port))
        if serve_only:
            click.echo(f"{len(pages)} pages at {server.url} until Ctrl-C", err=True)
            threading.Event().wait()
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="twinsieve-demo-")))
        click.echo(f"Crawling {len(pages)} pages at {server.url}", err=True)
        code, verdicts, seconds = _crawl(server.url, folder, processes)
    _report(verdicts, pages, as_json=as_json, seconds=seconds)
    if keep:
        click.echo(f"State, pages.jsonl and verdicts.jsonl are in {folder}", err=True)
    return code


def _crawl(url: str, folder: Path, processes: int | None) -> tuple[ExitCode, list[dict[str, Any]], float]:
    from crawler.running import project_settings, run_site
    from crawler.watching import progress, verdict_lines

    folder.mkdir(parents=True, exist_ok=True)
    settings = dict(
        IN_A_HURRY, NEARDUP_STATE=str(folder / "state"), FEEDS=feeds(str(folder / "pages.jsonl"), resume=False)
    )
    if processes:
        settings["NEARDUP_PROCESSES"] = processes
    starts = f"{url},{url}daily/live/storm.html?utm_source=evening"  # a page that changes between two visits
    log = folder / "verdicts.jsonl"
    with progress() as show, log.open("wb") as target:
        outcome = run_site(project_settings(settings), {"urls": starts}, (show, verdict_lines(target)))
    verdicts = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    return exit_code(outcome), verdicts, outcome.seconds


def _report(verdicts: list[dict[str, Any]], pages: Any, *, as_json: bool, seconds: float) -> None:
    from crawler.demo.report import compare, counts, print_rows

    rows = compare(verdicts, pages)
    if as_json:
        document = {"rows": [row.as_dict() for row in rows], **counts(rows), "seconds": round(seconds, 3)}
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    else:
        print_rows(rows)
        click.echo(f"{len(rows) / seconds:.0f} pages/s, {seconds:.1f} s with start-up", err=True)
