"""The start of docs/kafka.md, and the end of the tour, do what they say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.kafka import Cluster
from tests.documented_sessions import run, section
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site

pytestmark = pytest.mark.slow


def test_start_with_kafka(tmp_path: Path, own_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a broker without topics, three pages get their verdicts. The port is a free one here."""
    monkeypatch.setenv("TWINSIEVE_BOOTSTRAP", own_cluster().bootstrap)
    run(section("docs/kafka.md", "## Start"), tmp_path, instead={"--http 8080": "--http 0"})


def test_tour(tmp_path: Path, own_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl of the tour publishes, and the service gives the verdicts that the crawl gave before."""
    monkeypatch.setenv("TWINSIEVE_BOOTSTRAP", own_cluster().bootstrap)
    with serve(build_site()) as server:
        here = {"--http 8080": "--http 0", "http://127.0.0.1:40123/": server.url}
        run(section("docs/tour.md", "## Kafka"), tmp_path, instead=here)
