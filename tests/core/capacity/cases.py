"""Workloads and machines that tests plan for."""

from hypothesis import strategies as st

from dedup_service.core.capacity.capacity_plan import CapacityPlan, capacity_plan
from dedup_service.core.capacity.shard_bounds import choose_shards
from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import ClusterRequest, MachineKind, Workload
from dedup_service.core.errors import ConfigurationError

TEN_BILLION = Workload(pages=1e10, rate=10_000, copies=0.6)
COSTS = UnitCosts()
REFUSED = 128
"""Stands for a plan that no number of shards suffices for: more than the most that there can be."""

workloads = st.builds(
    Workload,
    pages=st.floats(1e4, 2e10),
    rate=st.floats(1, 11_000),
    copies=st.floats(0, 1),
    text_letters=st.integers(1, 20_000),
    html=st.booleans(),
)


def planned(
    workload: Workload = TEN_BILLION, costs: UnitCosts = COSTS, *, simulated: int = 500, **cluster: int
) -> CapacityPlan:
    """Plan with usual machines and a short simulation."""
    return capacity_plan(workload, MachineKind(), ClusterRequest(**cluster), costs, simulated_pages=simulated)


def fewest_shards(workload: Workload, machine: MachineKind = MachineKind()) -> int:  # noqa: B008 - frozen
    """Return the number of shards that is chosen, REFUSED if none is."""
    try:
        return choose_shards(workload, machine, ClusterRequest(), COSTS).shards
    except ConfigurationError:
        return REFUSED
