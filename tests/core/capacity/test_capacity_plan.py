"""The plan: one case by hand, and laws of all figures."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from dedup_service.core.capacity.capacity_plan import CapacityPlan
from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import Workload
from dedup_service.core.errors import ConfigurationError
from tests.core.capacity.cases import COSTS, planned, workloads

CASES: tuple[tuple[Workload, dict[str, int]], ...] = (
    # So many simulated pages that a shard commits.
    (Workload(pages=1e10, rate=10_000, copies=0.6), {"shards": 32, "replicas": 1, "simulated": 5_000}),
    (Workload(pages=1e10, rate=10_000, copies=0.6), {"shards": 32, "replicas": 3, "simulated": 200}),
    (Workload(pages=1e9, rate=9_000, html=True), {"shards": 8, "simulated": 500}),
    (Workload(pages=1e6, rate=5), {"shards": 1, "simulated": 200}),
)
FACTORS = (0.1, 0.9, 1.2, 1_000)


def test_ten_billion_pages_by_hand() -> None:
    """Arithmetic on the constants, done by hand."""
    plan = planned()
    expected = {
        ("fingerprinters", "cores busy"): 10_000 * (700 * 0.1e-6 + 0.13e-3),  # 2
        ("fingerprinters", "machines"): 2,
        ("fingerprinters", "processes"): 5,  # 10,000 · (.2 + .15 ms) / .8 = 4.4
        ("fingerprinters", "memory of a machine"): 3 * 0.55e9,
        ("shards", "machines"): 64,
        ("shards", "kept pages of a shard"): 125e6,
        ("shards", "memory of a machine"): 17.5378e9,
        ("shards", "disk of a machine"): 125e6 * 914,
        ("shards", "reads from its disk"): 10_000 * 1.5 / 32,
        ("resolver", "share of its rate"): 2 / 3,
        ("brokers", "in, from producers"): 1e4 * (1_050 + 700 + 240 + 2 + 1_350),
        ("brokers", "out, of the log to shards"): 448e6,
        ("brokers", "records of `candidates`"): 6_400,
        ("brokers", "machines"): 10,  # 65.2 TB / (.8 · 8.8 TB) = 9.3
        ("restore", "shard, from its files"): 5.2 + 30 + 5,
        ("restore", "shard, from a replica's files"): 40.2 + 114.25e9 / 0.625e9,
        ("restore", "shard, from log and outcomes alone"): 5.2 + 90_000 + 3_750,
        ("restore", "everything, from the log alone"): 1e10 / 15_000,
    }
    assert {key: plan.value(*key) for key in expected} == pytest.approx(expected)


@settings(deadline=None, max_examples=25)
@given(workloads)
def test_figures_grow_with_pages(workload: Workload) -> None:
    """With the same shards, ten times the pages take as much or more of everything, at the same rate."""
    try:
        large = planned(replace(workload, pages=10 * workload.pages), slots=64, shards=64)
    except ConfigurationError:
        return
    small = planned(workload, slots=64, shards=64)
    for before, after in zip(small.figures, large.figures, strict=True):
        assert after.value >= before.value * (1 - 1e-9) or before.name == "disk of a machine", after


@settings(deadline=None, max_examples=25)
@given(workloads)
def test_figures_but_latency_grow_with_the_rate(workload: Workload) -> None:
    """With the same shards, twice the rate takes as much or more; restores take as long."""
    try:
        fast = planned(replace(workload, rate=2 * workload.rate), slots=64, shards=64)
    except ConfigurationError:
        return
    slow = planned(workload, slots=64, shards=64)
    for before, after in zip(slow.figures, fast.figures, strict=True):
        spread = (before.part, before.name) in {
            ("brokers", "disk of a machine"),
            ("fingerprinters", "memory of a machine"),
        }
        assert before.part == "latency" or spread or after.value >= before.value * (1 - 1e-9), after
        assert before.part != "restore" or after.value == before.value


def named(plan: CapacityPlan, key: str) -> set[tuple[str, str]]:
    """Return the figures and topics that name a constant."""
    topics = {("topic", topic.topic) for topic in plan.topics if key in topic.basis}
    return topics | {(figure.part, figure.name) for figure in plan.figures if key in figure.basis}


def different(one: CapacityPlan, two: CapacityPlan) -> set[tuple[str, str]]:
    """Return the figures and topics that have other values in another plan."""
    pairs = zip(one.figures, two.figures, strict=True)
    topics = zip(one.topics, two.topics, strict=True)
    changed = {
        ("topic", a.topic)
        for a, b in topics
        if (a.in_bytes, a.readers, a.stored_bytes) != (b.in_bytes, b.readers, b.stored_bytes)
    }
    return changed | {(a.part, a.name) for a, b in pairs if a.value != b.value}


def changed_by(key: str, workload: Workload, cluster: dict[str, int]) -> set[tuple[str, str]]:
    """Return the figures and topics that another value of a constant changes."""
    base, cost, found = planned(workload, **cluster), getattr(COSTS, key), set()
    for factor in FACTORS:
        costs = replace(COSTS, **{key: replace(cost, value=cost.value * factor)})
        try:
            found |= different(base, planned(workload, costs, **cluster))
        except ConfigurationError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("key", UnitCosts().by_key())
def test_each_figure_names_the_constants_it_comes_from(key: str) -> None:
    """Another value of a constant changes the figures that name it, with the shards as given, and no others."""
    all_changed, all_named = set(), set()
    for workload, cluster in CASES:
        changed, names = changed_by(key, workload, cluster), named(planned(workload, **cluster), key)
        assert changed <= names
        all_changed, all_named = all_changed | changed, all_named | names
    assert all_named
    assert all_named - all_changed <= {("shards", "shards")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["memory_page", "memory_store", "memory_process", "full_memory", "disk_reads", "reads_page"]
)
def test_the_number_of_shards_names_its_bounds(key: str) -> None:
    """Where the plan chooses, another value of a constant of a bound changes the number of shards."""
    cost = getattr(COSTS, key)
    found = set()
    for factor in (0.01, 0.1, 0.5, 2, 10, 80, 1_000):
        try:
            found.add(planned(costs=replace(COSTS, **{key: replace(cost, value=cost.value * factor)})).chosen.shards)
        except ConfigurationError:
            found.add(0)
    assert found != {32}
    (shards,) = (one for one in planned().figures if (one.part, one.name) == ("shards", "shards"))
    assert key in shards.basis
