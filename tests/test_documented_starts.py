"""The starts of docs/files.md and docs/scrapy.md, and the tour, do what they say."""

from pathlib import Path

import pytest

from tests.documented_sessions import page, run, section
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site


def test_start_with_files(tmp_path: Path) -> None:
    """Monday's copy is found, and of Tuesday's lines only the new one is kept."""
    run(section("docs/files.md", "## Start"), tmp_path)


@pytest.mark.slow
def test_start_with_scrapy(tmp_path: Path) -> None:
    """A spider of eight lines leaves the copies of the demo site out of its feed."""
    with serve(build_site()) as server:
        run(section("docs/scrapy.md", "## Start"), tmp_path, instead={"http://127.0.0.1:40123/": server.url})


@pytest.mark.slow
def test_tour(tmp_path: Path) -> None:
    """All of docs/tour.md but Kafka: file, `why`, profile, crawl and labels, in one folder."""
    before_kafka = page("docs/tour.md").partition("\n## Kafka\n")[0]
    with serve(build_site()) as server:
        run(before_kafka, tmp_path, instead={"http://127.0.0.1:40123/": server.url})
