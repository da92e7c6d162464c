"""The way over a real broker: `serve` in one process that is killed in between, and divided among two shards.

One partition, so that the order of the pages is that of the crawl. Changes are appended when the pages before them
are answered.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from dedup_service import PROFILES, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.control.operator_records import (
    add_records,
    begin_layout,
    change_policy,
    policy_in_force,
)
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.chaos.reading import Tail
from tests.golden.crawls import Crawl, Fetched, crawls
from tests.golden.runs import Run
from tests.golden.ways import DecidingError, runs_of
from tests.integration.serving import Serving

WINDOW = 512
"""No message of the log has more pages."""

PROCESSES = {
    "serve, killed": {"whole": ()},
    "serve, 2 shards": {
        "fingerprints": ("--steps", "fingerprint"),
        "one": ("--steps", "shard", "--shard", "1/2"),
        "two": ("--steps", "shard", "--shard", "2/2"),
        "resolver": ("--steps", "decide", "--shards", "2"),
    },
}
"""Way → the options of each of its processes."""


@contextmanager
def service_runs() -> Iterator[list[Run]]:
    """Start a broker and yield the runs over it."""
    with Cluster() as cluster:
        yield [
            Run(name, way, partial(_served, cluster.bootstrap, way, make), is_exact=False)
            for name, make in crawls().items()
            for way in PROCESSES
        ]


def _served(bootstrap: str, way: str, make: Callable[[], Crawl], folder: Path) -> list[bytes]:
    topics = Topics(f"golden-{uuid.uuid4().hex[:8]}.")
    connection = Connection(bootstrap)
    create(connection, topics, Layout(partitions=1, slots=8))
    begin_layout(connection, topics, IndexLayout(slots=8, window=WINDOW))
    with _Service(bootstrap, topics, way, folder) as service:
        return service.verdicts(make())


class _Service:
    """The processes of a service, and the verdicts that they wrote."""

    def __init__(self, bootstrap: str, topics: Topics, way: str, folder: Path) -> None:
        self._connection, self._topics, self._folder = Connection(bootstrap), topics, folder
        self._where = ("--bootstrap", bootstrap, "--prefix", topics.prefix, "--group", "golden")
        self._options = PROCESSES[way]
        self._processes: dict[str, Serving] = {}
        self._values: list[bytes] = []

    def __enter__(self) -> Self:
        self._folder.mkdir()
        for name in self._options:
            self._start(name)
        self._tail = Tail(self._connection.bootstrap, [self._topics.verdicts])
        return self

    def __exit__(self, *_: object) -> None:
        self._tail.close()
        for name in self._processes:
            self._kill(name)

    def verdicts(self, crawl: Crawl) -> list[bytes]:
        """Return the verdicts on a crawl; a process that does all is killed when half of them are there."""
        sent, is_killed = 0, len(self._processes) > 1
        for number, section in enumerate(crawl.sections):
            if number:
                in_force = policy_in_force(self._connection, self._topics)
                rule, keep = PROFILES[section.profile], Keep.parse(section.keep)
                change_policy(self._connection, self._topics, in_force, rule=rule, keep=keep)
            for pages in runs_of(section.steps):
                if not isinstance(pages, list):
                    add_records(self._connection, self._topics, [pages])
                    continue
                half = len(pages) if is_killed or sent + len(pages) < crawl.pages // 2 else len(pages) // 2
                self._answered(pages[:half], sent)
                if half < len(pages):
                    self._kill("whole")
                    self._start("whole")
                    is_killed = True
                    self._answered(pages[half:], sent + half)
                sent += len(pages)
        return sorted(self._values, key=lambda value: json.loads(value)["offset"])

    def _answered(self, pages: list[Fetched], first: int) -> None:
        """Publish pages and wait until they have verdicts."""
        topic = self._topics.pages
        messages = [Message(topic, page.line(first + at), page.url.encode()) for at, page in enumerate(pages)]
        append(self._connection, topic, messages)
        while len(self._values) < first + len(pages):
            self._values += [record.value for record in self._tail.poll()]
            for name, process in self._processes.items():
                if process.process.poll() is not None:
                    raise DecidingError(f"{name} ended: {process.log.read_text()[-2000:]}")

    def _start(self, name: str) -> None:
        log = self._folder / f"{name}-{len(list(self._folder.glob('*.log')))}.log"
        self._processes[name] = Serving(log, *self._where, "--state", self._folder / name, *self._options[name])

    def _kill(self, name: str) -> None:
        self._processes[name].process.kill()
        self._processes[name].process.wait()
