"""`twinsieve demo --bootstrap …`: the crawl publishes pages, and a service decides them."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.runtime.kafka.client.config import Connection
from twinsieve_crawler.cli.crawl import exit_code


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
