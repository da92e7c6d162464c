"""How many shards are chosen: the fewest that keep to all bounds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.capacity.shard_bounds import choose_shards, shard_bounds, shard_memory, window_rate
from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import ClusterRequest, MachineKind, Workload
from dedup_service.core.errors import ConfigurationError
from tests.core.capacity.cases import COSTS, REFUSED, TEN_BILLION, fewest_shards, workloads

POWERS = (1, 2, 4, 8, 16, 32, 64)
machines = st.builds(MachineKind, memory_bytes=st.integers(1 << 29, 1 << 38), disk_bytes=st.integers(1 << 33, 1 << 44))


@given(workloads, machines)
def test_the_fewest_shards_are_chosen(workload: Workload, machine: MachineKind) -> None:
    """Those that are chosen keep to all bounds; no smaller number does."""
    enough = [
        shards
        for shards in POWERS
        if all(bound.holds for bound in shard_bounds(workload, machine, shards, 4096, COSTS))
    ]
    assert fewest_shards(workload, machine) == min(enough, default=REFUSED)


@given(workloads, machines, st.floats(1, 100))
def test_more_pages_never_need_fewer_shards(workload: Workload, machine: MachineKind, factor: float) -> None:
    """Shards grow with the number of pages and with the rate."""
    shards = fewest_shards(workload, machine)
    assert fewest_shards(replace(workload, pages=workload.pages * factor), machine) >= shards
    assert fewest_shards(replace(workload, rate=workload.rate * factor), machine) >= shards


@given(workloads, machines, st.floats(0, 1))
def test_copies_never_need_more_shards(workload: Workload, machine: MachineKind, copies: float) -> None:
    """A page that is a copy takes no memory."""
    more = replace(workload, copies=max(copies, workload.copies))
    assert fewest_shards(more, machine) <= fewest_shards(workload, machine)
    assert more.kept <= workload.kept


@given(workloads, machines)
def test_larger_machines_never_need_more_shards(workload: Workload, machine: MachineKind) -> None:
    """Doubling memory or disk leaves the shards as they are, or takes fewer."""
    shards = fewest_shards(workload, machine)
    assert fewest_shards(workload, replace(machine, memory_bytes=2 * machine.memory_bytes)) <= shards
    assert fewest_shards(workload, replace(machine, disk_bytes=2 * machine.disk_bytes)) <= shards


def test_ten_billion_pages_by_hand() -> None:
    """4·10^9 kept pages: 16 shards need 34.7 GB of 27.5 each, 32 need 17.5; so memory decides."""
    chosen = choose_shards(TEN_BILLION, MachineKind(), ClusterRequest(), COSTS)
    assert (chosen.slots, chosen.shards) == (32, 32)
    (memory,) = chosen.decided_by
    assert memory.name == "memory"
    assert memory.needed == pytest.approx(0.3e9 + 0.0878e9 + 250e6 * 137.2)
    assert memory.allowed == pytest.approx(0.8 * 32 * 2**30)
    assert shard_memory(125e6, COSTS) == pytest.approx(17.5378e9)


def test_reads_from_the_disk_can_decide() -> None:
    """A slow disk needs more shards than memory does."""
    slow = replace(COSTS, disk_reads=COSTS.disk_reads.measured(1_000, "test"))
    chosen = choose_shards(Workload(pages=1e6, rate=10_000), MachineKind(), ClusterRequest(), slow)
    assert chosen.shards == 32  # 15,000 reads a second, 800 in each
    assert [bound.name for bound in chosen.decided_by] == ["reads from the disk"]


def test_one_shard_needs_no_reason() -> None:
    """Nothing decided if the smallest number suffices."""
    chosen = choose_shards(Workload(pages=1e6, rate=100), MachineKind(), ClusterRequest(), COSTS)
    assert (chosen.slots, chosen.shards, chosen.decided_by) == (8, 1, ())


@pytest.mark.parametrize(
    ("workload", "machine", "request_", "says"),
    [
        (Workload(pages=1e11, rate=10_000), MachineKind(), ClusterRequest(), r"64 shards .* keep fewer .* machines of"),
        (Workload(pages=1e12, rate=10_000), MachineKind(), ClusterRequest(), r"row numbers: .* keep fewer pages"),
        (TEN_BILLION, MachineKind(), ClusterRequest(slots=8), "each of 8 shards .* more slots, at most 64"),
        (TEN_BILLION, MachineKind(), ClusterRequest(shards=4), "each of 4 shards .* number of shards to the plan"),
        (TEN_BILLION, MachineKind(disk_bytes=1 << 30), ClusterRequest(), "disk: .* larger disk"),
        (Workload(pages=1e6, rate=13_000), MachineKind(), ClusterRequest(), "resolver allows, 12,000 .* several logs"),
        (Workload(pages=1e6, rate=1e6), MachineKind(), ClusterRequest(), "rate of the resolver allows, 12,000"),
        (Workload(pages=1e6, rate=10_000), MachineKind(), ClusterRequest(window=500), "a longer window"),
    ],
)
def test_what_no_shards_suffice_for_is_refused(
    workload: Workload, machine: MachineKind, request_: ClusterRequest, says: str
) -> None:
    """The message names the bound, both values and what would help."""
    with pytest.raises(ConfigurationError, match=says):
        choose_shards(workload, machine, request_, COSTS)


def test_machines_of_the_advised_size_suffice() -> None:
    """Who follows the advice on memory has a plan."""
    with pytest.raises(ConfigurationError, match="machines of 400 GiB"):
        choose_shards(Workload(pages=1.6e11, rate=10_000), MachineKind(), ClusterRequest(), COSTS)
    advised = MachineKind(memory_bytes=400 << 30)
    assert fewest_shards(Workload(pages=1.6e11, rate=10_000), advised) == 64
    assert fewest_shards(Workload(pages=1.6e11, rate=10_000), MachineKind(memory_bytes=399 << 30)) == REFUSED


def test_the_rate_that_a_refusal_names_suffices() -> None:
    """Of several bounds that no shards help, the tightest is named, so the rate it allows is planned."""
    slow = replace(COSTS, shard_rate=COSTS.shard_rate.measured(10_000, "test"))
    with pytest.raises(ConfigurationError, match="rate of a shard allows, 8,000"):
        choose_shards(Workload(pages=1e6, rate=20_000), MachineKind(), ClusterRequest(), slow)
    assert choose_shards(Workload(pages=1e6, rate=8_000), MachineKind(), ClusterRequest(), slow).shards == 2


def test_the_window_is_a_round_of_pages() -> None:
    """By hand: two hops of 22 ms, 100 pages in a shard 5 ms and in the resolver 6.7 ms, 3,996 pages ahead."""
    assert window_rate(4096, UnitCosts()) == pytest.approx(3_996 / (0.044 + 0.005 + 100 / 15_000))
    assert window_rate(50, UnitCosts()) == 0
