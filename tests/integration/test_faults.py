"""A panic of the native core in whole processes: its page is undecided, operators are told, and the work goes on."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.reading import read_all
from tests.crawler.running import FAST, environment, json_lines, run
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page, write_lines
from tests.panicking import VARIABLE
from twinsieve_crawler.demo.server import serve as serve_site
from twinsieve_crawler.demo.site import build_site

pytestmark = pytest.mark.slow

FAULT = "a fault of twinsieve: on purpose; report it"
PAGES = [page(number, article(number % 4)) for number in range(8)]
URL = "https://news.example/2"
EXPECTED = ["unique", "unique", "undecided", "unique", "duplicate", "duplicate", "unique", "duplicate"]
"""The verdicts on PAGES if the core panics at URL: its copy is the first of its text."""


def run_panicking(*arguments: object, at: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `twinsieve` to its end, with a panic at the page of a URL."""
    command = [sys.executable, "-m", "tests.panicking", *map(str, arguments)]
    env = {**environment(), VARIABLE: at}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=HANG_S, check=False)


def faults(verdicts: list[dict[str, Any]]) -> list[str]:
    """Return the URLs that are undecided because of the fault."""
    return [one["url"] for one in verdicts if (one["verdict"], one["reason"]) == ("undecided", FAULT)]


def test_filter(tmp_path: Path) -> None:
    """All other pages are judged, the fault is logged and counted, and a restart gives the same verdicts."""
    write_lines(tmp_path / "pages.jsonl", PAGES)
    command = ("filter", "pages.jsonl", "--state", "state", "--json")
    done = run_panicking(*command, at=URL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = json_lines(done.stdout)
    assert [one["verdict"] for one in verdicts] == EXPECTED
    assert faults(verdicts) == [URL]
    assert f"{URL}: {FAULT}" in done.stderr
    assert json_lines(done.stderr)[0]["faults"] == 1
    again = run(*command, cwd=tmp_path)
    assert (again.returncode, json_lines(again.stdout)) == (0, verdicts)


@pytest.mark.long
def test_crawl(tmp_path: Path) -> None:
    """Scrapy goes on: the page is in the feed, its links are followed, and the next crawl knows all other pages."""
    outputs = ("-o", "pages.jsonl", "--verdicts", "v.jsonl", "--state", "s", "--json")
    with serve_site(build_site()) as server:
        url = f"{server.url}courier/"
        command = ("crawl", url, *FAST, *outputs, "--depth", 1)
        done = run_panicking(*command, at=url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        verdicts, items = (json_lines((tmp_path / name).read_text("utf-8")) for name in ("v.jsonl", "pages.jsonl"))
        again = run(*command, cwd=tmp_path)
    [summary] = json_lines(done.stderr)
    assert summary["pages"] == len(verdicts) > 10
    assert faults(verdicts) == [url]
    assert url in {item["url"] for item in items}
    assert (summary["errors"], summary["finish_reason"]) == ({"fault": 1}, "finished")
    assert f"{url}: {FAULT}" in done.stderr
    assert json_lines(again.stderr)[0]["verdicts"]["unchanged"] == len(verdicts) - 1


def test_service(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page has one verdict, before and after a restart; log lines and metrics tell of the fault."""
    monkeypatch.setenv(VARIABLE, URL)
    append(broker.connection, topics.pages, [Message(topics.pages, json.dumps(one).encode()) for one in PAGES])
    serving = serve(module="tests.panicking")
    faulty = 'twinsieve_problems_total{kind="fault",step="decide"} 1.0'
    serving.wait_for(lambda: faulty in serving.get("/metrics")[1])
    serving.wait_for(lambda: 'twinsieve_records_total{step="decide"} 8.0' in serving.get("/metrics")[1])
    assert [line["level"] for line in serving.lines if f"{URL}: {FAULT}" in line["event"]] == ["error"]
    assert serving.end(signal.SIGTERM) == 143
    second = serve()
    append(broker.connection, topics.pages, [Message(topics.pages, json.dumps(page(9)).encode())])
    second.wait_for(lambda: 'twinsieve_records_total{step="decide"} 1.0' in second.get("/metrics")[1])
    assert second.end(signal.SIGTERM) == 143
    written = [json.loads(one.value or b"{}") for one in read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]]
    assert sorted(one["url"] for one in written) == sorted(str(one["url"]) for one in [*PAGES, page(9)])
    assert faults(written) == [URL]
    assert sum(one["verdict"] == "duplicate" for one in written) == 3
