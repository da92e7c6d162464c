"""The ways of answering pages that are measured: `twinsieve serve`, and the plain consumer beside it.

A way is started on topics of its own and tells what it has used; it is killed when it is measured, since none of them
needs a good end.
"""

import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from subprocess import Popen

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.service.processes import ServiceProcess, descendants
from benchmarks.service.usage import cpu_s
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka.die_with_parent import start_dying_with_parent
from deploy.kafka.ports import free_ports

__all__ = ["Contender", "Plain", "TwinsieveContender"]


class Contender(ABC):
    """A program that answers the pages of a set of topics in `verdicts`."""

    @abstractmethod
    def start(self, bootstrap: str, topics: Topics, folder: Path) -> None:
        """Start it."""

    @abstractmethod
    def stop(self) -> None:
        """End it at once."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Its process."""

    @property
    def used_s(self) -> dict[str, float]:
        """Processor seconds used so far, of its own process and of those it started."""
        pid = self.pid
        if pid is None:
            return {}
        return {"main": cpu_s([pid]), "workers": cpu_s(descendants(pid))}

    @property
    def parts_s(self) -> dict[str, float]:
        """Seconds by part of the work, where it tells."""
        return {}


class TwinsieveContender(Contender):
    """`twinsieve serve` with so many worker processes."""

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
        """The process of `serve`."""
        return None if self._service is None else self._service.pid

    @property
    def ready(self) -> bool:
        """Whether pages go through."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def parts_s(self) -> dict[str, float]:
        """Seconds by step and part, from /metrics."""
        found = [sample for sample in self.samples() if sample.name == "twinsieve_batch_seconds_sum"]
        return {f"{sample.labels['step']} {sample.labels['part']}": sample.value for sample in found}

    def value(self, name: str, **labels: str) -> float:
        """Return the sample of that name and those labels, 0 where there is none yet."""
        found = (sample.value for sample in self.samples() if (sample.name, sample.labels) == (name, labels))
        return next(found, 0.0)

    def samples(self) -> list[Sample]:
        """Return what /metrics says now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


class Plain(Contender):
    """benchmarks.service.plain_consumer."""

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
        """Its process."""
        return None if self._process is None else self._process.pid
