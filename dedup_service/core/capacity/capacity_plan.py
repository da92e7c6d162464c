"""The plan: what an index over many machines takes, as figures that name the constants they come from.

    plan = capacity_plan(Workload(pages=1e10, rate=10_000, copies=0.6), MachineKind(), ClusterRequest())
    plan.chosen.shards, plan.figures, plan.topics

Everything is arithmetic on `UnitCosts`, except latency and highest rate, which `pipeline` simulates.

Invariant: a figure's `basis` has every constant that its formula has, besides those by which the number of shards was
chosen.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dedup_service.core.capacity.pipeline import Pipeline, PipelineStage, highest_rate, simulate
from dedup_service.core.capacity.shard_bounds import ChosenShards, choose_shards, shard_disk, shard_memory, window_rate
from dedup_service.core.capacity.traffic import LOG, TopicTraffic, topic_traffic
from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import ClusterRequest, MachineKind, Workload

SIMULATED_S, SIMULATED_PAGES = 25, (20_000, 250_000)
"""Seconds of a simulated run, and its pages at least and at most, so that fast processes commit twice or more."""


@dataclass(frozen=True, slots=True)
class PlannedFigure:
    """One figure of a plan.

    Attributes:
        part: What it belongs to: fingerprinters, shards, resolver, brokers, restore, latency.
        name: What it is.
        value: In `unit`.
        unit: machines, processes, cores, bytes, bytes/s, pages, pages/s, records/s, reads/s, s, or "" for a number.
        basis: The constants that it comes from, by their names in `UnitCosts`.
    """

    part: str
    name: str
    value: float
    unit: str
    basis: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What was planned.

    Attributes:
        workload: The pages.
        machine: The machines.
        request: The cluster as far as it was given.
        chosen: Slots and shards, and the bounds that decided.
        figures: All figures.
        topics: Traffic and storage of each topic.
        costs: The constants.
    """

    workload: Workload
    machine: MachineKind
    request: ClusterRequest
    chosen: ChosenShards
    figures: tuple[PlannedFigure, ...]
    topics: tuple[TopicTraffic, ...]
    costs: UnitCosts

    def value(self, part: str, name: str) -> float:
        """Return a figure by its part and name. KeyError if there is none."""
        return {(one.part, one.name): one.value for one in self.figures}[part, name]


def capacity_plan(
    workload: Workload,
    machine: MachineKind,
    request: ClusterRequest,
    costs: UnitCosts | None = None,
    *,
    simulated_pages: int | None = None,
) -> CapacityPlan:
    """Plan an index over many machines.

    Args:
        workload: The pages.
        machine: The machines.
        request: The cluster as far as it is given.
        costs: The constants; those of this version by default.
        simulated_pages: Pages of each simulated run; by default as many as come in 25 s, within bounds.

    Returns:
        The plan.

    Raises:
        ConfigurationError: No number of shards suffices, or the given one does not.
    """
    costs = costs or UnitCosts()
    chosen = choose_shards(workload, machine, request, costs)
    topics = topic_traffic(workload, chosen.shards, request.replicas, costs)
    least, most = SIMULATED_PAGES
    simulated = simulated_pages or round(min(max(SIMULATED_S * workload.rate, least), most))
    planner = _Planner(workload, machine, request, costs, chosen, topics, simulated)
    return CapacityPlan(workload, machine, request, chosen, tuple(planner.figures()), topics, costs)


def planned_pipeline(workload: Workload, chosen: ChosenShards, request: ClusterRequest, costs: UnitCosts) -> Pipeline:
    """Return the pipeline that a plan means, to be simulated."""
    return Pipeline(
        fingerprinter=PipelineStage(_page_seconds(workload, costs), costs.append_s.value),
        shard=PipelineStage(
            1 / costs.shard_rate.value,
            pause_s=costs.commit_wait_s.value,
            pause_pages=round(costs.commit_pages.value),
        ),
        resolver=PipelineStage(1 / costs.resolver_rate.value),
        fingerprinters=_fingerprinters(workload, costs),
        shards=chosen.shards,
        replicas=request.replicas,
        window=request.window,
        batch_pages=min(int(costs.batch_pages.value), request.window),
        hop_s=costs.hop_s.value,
        answer_hop_s=costs.hop_s.value,
    )


def _page_seconds(workload: Workload, costs: UnitCosts) -> float:
    """Return the seconds of a core that fingerprinting a page takes, client included."""
    if workload.html:
        return costs.html_worker.value + costs.html_client.value
    return costs.text_letter.value * workload.text_letters + costs.text_client.value


def _fingerprinters(workload: Workload, costs: UnitCosts) -> int:
    """Return the processes that fingerprint: each prepares a batch, appends it, and then takes the next one."""
    cycle_s = _page_seconds(workload, costs) + costs.append_s.value / costs.batch_pages.value
    needed = math.ceil(workload.rate * cycle_s / costs.full_rate.value)
    return max(needed, int(costs.fingerprint_machines.value))


@dataclass(frozen=True, slots=True)
class _Planner:
    """Works the figures out, part by part."""

    workload: Workload
    machine: MachineKind
    request: ClusterRequest
    costs: UnitCosts
    chosen: ChosenShards
    topics: tuple[TopicTraffic, ...]
    simulated: int

    def figures(self) -> Iterator[PlannedFigure]:
        yield from self._fingerprinters()
        yield from self._shards()
        yield from self._resolver()
        yield from self._brokers()
        yield from self._restore()
        yield from self._latency()

    def _fingerprinters(self) -> Iterator[PlannedFigure]:
        costs, rate, cores = self.costs, self.workload.rate, self.machine.cores
        client, worker = ("html_client", "html_worker") if self.workload.html else ("text_client", "text_letter")
        busy = rate * _page_seconds(self.workload, costs)
        machines = max(costs.fingerprint_machines.value, math.ceil(busy / (costs.full_rate.value * cores)))
        processes = max(machines, _fingerprinters(self.workload, costs))
        memory = (costs.memory_process.value + costs.memory_worker.value) * math.ceil(processes / machines)
        of_machines = (client, worker, "full_rate", "fingerprint_machines")
        of_processes = (*of_machines, "append_s", "batch_pages")
        for name, value, unit, keys in (
            ("machines", machines, "machines", of_machines),
            ("cores busy", busy, "cores", (client, worker)),
            ("processes", processes, "processes", of_processes),
            ("memory of a machine", memory, "bytes", (*of_processes, "memory_process", "memory_worker")),
        ):
            yield PlannedFigure("fingerprinters", name, value, unit, keys)

    def _shards(self) -> Iterator[PlannedFigure]:
        costs, rate, shards = self.costs, self.workload.rate, self.chosen.shards
        kept = self.workload.kept / shards
        memory = shard_memory(kept, costs)
        of_memory, of_disk = ("memory_page", "memory_store", "memory_process"), ("disk_page", "disk_names")
        of_reads = ("reads_page", "disk_reads", "full_rate")
        for name, value, unit, keys in (
            ("shards", shards, "", (*of_memory, *of_disk, *of_reads, "full_memory", "full_disk", "shard_rows")),
            ("replicas of each", self.request.replicas, "", ()),
            ("machines", shards * self.request.replicas, "machines", ()),
            ("kept pages of a shard", kept, "pages", ()),
            ("memory of a machine", memory, "bytes", of_memory),
            ("share of its memory", memory / self.machine.memory_bytes, "", of_memory),
            ("disk of a machine", shard_disk(kept, costs), "bytes", of_disk),
            ("share of its rate", rate / costs.shard_rate.value, "", ("shard_rate",)),
            ("reads from its disk", rate * costs.reads_page.value / shards, "reads/s", ("reads_page",)),
            ("network in", rate * costs.log_page.value, "bytes/s", ("log_page",)),
        ):
            yield PlannedFigure("shards", name, value, unit, keys)

    def _resolver(self) -> Iterator[PlannedFigure]:
        costs, rate = self.costs, self.workload.rate
        arriving = rate * (costs.log_page.value + costs.candidates_page.value * self.request.replicas)
        for name, value, unit, keys in (
            ("machines", costs.resolvers.value, "machines", ("resolvers",)),
            ("memory of a machine", shard_memory(0, costs), "bytes", ("memory_process", "memory_store")),
            ("share of its rate", rate / costs.resolver_rate.value, "", ("resolver_rate",)),
            ("network in, without `pages`", arriving, "bytes/s", ("log_page", "candidates_page")),
        ):
            yield PlannedFigure("resolver", name, value, unit, keys)

    def _brokers(self) -> Iterator[PlannedFigure]:
        costs = self.costs
        usable = costs.full_network.value * self.machine.network_bytes
        copies = costs.broker_copies.value
        arriving = sum(topic.in_bytes for topic in self.topics)
        copying = arriving * (copies - 1)
        leaving = sum(topic.out_bytes for topic in self.topics)
        stored = copies * sum(topic.stored_bytes for topic in self.topics)
        busiest = max(arriving, leaving) + copying
        disk = costs.full_disk.value * self.machine.disk_bytes
        brokers = max(copies, math.ceil(busiest / usable), math.ceil(stored / disk))
        log = next(topic for topic in self.topics if topic.topic == LOG)
        records = self.workload.rate / costs.batch_pages.value * self.chosen.shards * self.request.replicas
        written = _bases(self.topics, "pages_kept_s", "candidates_kept_s")
        copied, kept = (*written, "broker_copies"), (*_bases(self.topics), "broker_copies")
        of_machines = (*kept, "full_network", "full_disk")
        for name, value, unit, keys in (
            ("machines", brokers, "machines", of_machines),
            ("in, from producers", arriving, "bytes/s", written),
            ("in, copies between brokers", copying, "bytes/s", copied),
            ("out, to readers", leaving, "bytes/s", written),
            ("out, of the log to shards", log.in_bytes * self._holders, "bytes/s", ("log_page",)),
            ("records of `candidates`", records, "records/s", ("batch_pages",)),
            ("disk, log alone, one replica", log.stored_bytes, "bytes", ("log_page",)),
            ("disk, all topics and replicas", stored, "bytes", kept),
            ("disk of a machine", stored / brokers, "bytes", of_machines),
        ):
            yield PlannedFigure("brokers", name, value, unit, keys)

    @property
    def _holders(self) -> int:
        return self.chosen.shards * self.request.replicas

    def _restore(self) -> Iterator[PlannedFigure]:
        costs, pages, kept = self.costs, self.workload.pages, self.workload.kept / self.chosen.shards
        usable = costs.full_network.value * self.machine.network_bytes
        behind = min(costs.commit_pages.value, pages) / costs.shard_rate.value
        opened = costs.start_s.value + costs.open_page.value * kept + behind
        of_files = ("start_s", "open_page", "commit_pages", "shard_rate")
        read_page = max(costs.log_page.value / usable, costs.decode_page.value)
        of_log = ("log_page", "decode_page", "full_network")
        slowest = min(costs.shard_rate.value, costs.resolver_rate.value)
        for name, value, keys in (
            ("shard, from its files", opened, of_files),
            (
                "shard, from a replica's files",
                opened + shard_disk(kept, costs) / usable,
                (*of_files, "disk_page", "disk_names", "full_network"),
            ),
            (
                "shard, from log and outcomes alone",
                costs.start_s.value + pages * read_page + kept * costs.fill_page.value,
                ("start_s", "fill_page", *of_log),
            ),
            ("resolver, from its files", costs.start_s.value + behind, ("start_s", "commit_pages", "shard_rate")),
            ("resolver, from log and outcomes alone", costs.start_s.value + pages * read_page, ("start_s", *of_log)),
            ("everything, from the log alone", pages / slowest, ("shard_rate", "resolver_rate")),
            ("fingerprinter, which has no state", costs.start_s.value, ("start_s",)),
        ):
            yield PlannedFigure("restore", name, value, "s", keys)

    def _latency(self) -> Iterator[PlannedFigure]:
        costs = self.costs
        pipeline = planned_pipeline(self.workload, self.chosen, self.request, costs)
        run = simulate(pipeline, self.workload.rate, self.simulated)
        most = highest_rate(pipeline, self.simulated)
        client, worker = ("html_client", "html_worker") if self.workload.html else ("text_client", "text_letter")
        of_window = ("hop_s", "batch_pages", "shard_rate", "resolver_rate")
        of_commits = ("commit_pages", "commit_wait_s")
        basis = (*of_window, "append_s", client, worker, "full_rate", "fingerprint_machines", *of_commits)
        for name, value, unit, keys in (
            ("page → outcome, p50, simulated", run.p50_s, "s", basis),
            ("page → outcome, p99, simulated", run.p99_s, "s", basis),
            ("highest rate, simulated", most, "pages/s", basis),
            ("highest rate of the window", window_rate(self.request.window, costs), "pages/s", of_window),
        ):
            yield PlannedFigure("latency", name, value, unit, keys)


def _bases(topics: Iterable[TopicTraffic], *without: str) -> tuple[str, ...]:
    """Return the constants of all topics, each once."""
    keys = dict.fromkeys(key for topic in topics for key in topic.basis)
    return tuple(key for key in keys if key not in without)
