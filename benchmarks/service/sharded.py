"""Shards, a resolver and a fingerprinter as a contender, each in a process of its own."""

from pathlib import Path

from benchmarks.service.contenders import Contender
from benchmarks.service.usage import cpu_s
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.control.operator_records import begin_layout
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from tests.chaos.processes import ServiceProcess, descendants


class ShardedContender(Contender):
    """So many shards."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._processes: dict[str, ServiceProcess] = {}

    def start(self, bootstrap: str, topics: Topics, folder: Path) -> None:
        """Start all of them, on empty folders."""
        connection = Connection(bootstrap)
        create(connection, topics, Layout(partitions=4, slots=8))
        begin_layout(connection, topics, IndexLayout(slots=8))
        where = ["--bootstrap", bootstrap, "--prefix", topics.prefix]
        steps = {"resolver": ["--steps", "decide", "--shards", f"{self._shards}"], "main": ["--steps", "fingerprint"]}
        for number in range(1, self._shards + 1):
            steps[f"shard {number}"] = ["--steps", "shard", "--shard", f"{number}/{self._shards}"]
        folder.mkdir(parents=True, exist_ok=True)
        for name, arguments in steps.items():
            plain = name.replace(" ", "-")
            process = ServiceProcess(name, [*where, *arguments], folder / plain, folder / f"{plain}.log")
            self._processes[name] = process
            process.start()

    def stop(self) -> None:
        """Kill them."""
        for process in self._processes.values():
            process.kill()

    @property
    def pid(self) -> int | None:
        """The id of the resolver."""
        return self._processes["resolver"].pid if self._processes else None

    @property
    def used_s(self) -> dict[str, float]:
        """Processor seconds of each process; of the fingerprinter `main`, and of its workers."""
        used = {name: cpu_s([process.pid or 0]) for name, process in self._processes.items()}
        used["shards"] = sum(seconds for name, seconds in used.items() if name.startswith("shard "))
        return {**used, "workers": cpu_s(descendants(self._processes["main"].pid or 0))}
