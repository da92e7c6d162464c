"""The programs that the benchmarks compare: `twinsieve serve` and the plain consumer.

A contender is started on fresh topics and reports the processor time that it uses. It is killed after the
measurement: none of them needs a clean shutdown.
"""

import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from subprocess import Popen

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.service.usage import cpu_s
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka.die_with_parent import start_dying_with_parent
from deploy.kafka.ports import free_ports
from tests.chaos.processes import ServiceProcess, descendants


class Contender(ABC):
    """A program that reads `pages` of a set of topics and writes an answer to each page into `verdicts`."""

    @abstractmethod
    def start(self, bootstrap: str, topics: Topics, folder: Path) -> None:
        """Start it."""

    @abstractmethod
    def stop(self) -> None:
        """End it immediately."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The id of its process, None while it does not run."""

    @property
    def used_s(self) -> dict[str, float]:
        """Processor seconds used so far by its main process and by the processes that it started."""
        pid = self.pid
        if pid is None:
            return {}
        return {"main": cpu_s([pid]), "workers": cpu_s(descendants(pid))}


class TwinsieveContender(Contender):
    """`twinsieve serve` with a given number of worker processes."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._service: ServiceProcess | None = None
        self._port = 0

    def start(self, bootstrap: str, topics: Topics, folder: Path) -> None:
        """Start a service on an empty state folder."""
        (self._port,) = free_ports(1)
        arguments = ["--bootstrap", bootstrap, "--prefix", topics.prefix, "--processes", str(self._processes)]
        arguments += ["--http", str(self._port)]
        folder.mkdir(parents=True, exist_ok=True)
        self._service = ServiceProcess("serve", arguments, folder / "state", folder / "serve.log")
        self._service.start()

    def stop(self) -> None:
        """Kill it."""
        if self._service is not None:
            self._service.kill()

    @property
    def pid(self) -> int | None:
        """The id of the `serve` process."""
        return None if self._service is None else self._service.pid

    @property
    def ready(self) -> bool:
        """Whether `/readyz` answers 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def value(self, name: str, **labels: str) -> float:
        """Return the sample with this name and these labels, 0 if there is none yet."""
        found = (sample.value for sample in self.samples() if (sample.name, sample.labels) == (name, labels))
        return next(found, 0.0)

    def samples(self) -> list[Sample]:
        """Return the current samples of /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


class PlainConsumer(Contender):
    """The process of `benchmarks.service.plain_consumer`."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def start(self, bootstrap: str, topics: Topics, folder: Path) -> None:
        """Start the plain consumer."""
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.service.plain_consumer"]
        with (folder / "plain.log").open("wb") as log:
            self._process = start_dying_with_parent([*command, bootstrap, topics.pages, topics.verdicts, "plain"], log)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int | None:
        """The id of the consumer's process."""
        return None if self._process is None else self._process.pid
