"""How many shards an index needs: the bounds of a shard, and the fewest shards that keep to all of them.

A shard keeps the entries of its slots, so memory, row numbers and reads of evidence fall with the number of shards;
but every shard reads the whole log, so its rate does not, nor does that of the resolver. The window is a bound, too:
a page waits for the outcome of the page W before it, which takes a round from a shard over the resolver and back.
"""

import math
from dataclasses import dataclass

from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import MAX_SLOTS, ClusterRequest, MachineKind, Workload
from dedup_service.core.errors import ConfigurationError

MEMORY, DISK = "memory", "disk"
ROWS = "row numbers"
READS = "reads from the disk"
RATE, RESOLVER, WINDOW = "rate of a shard", "rate of the resolver", "round of the window"


@dataclass(frozen=True, slots=True)
class ShardBound:
    """What a shard needs of something, and how much it may use.

    Attributes:
        name: Of what.
        needed: In `unit`.
        allowed: In `unit`, without the margin.
        unit: bytes, pages, reads/s or pages/s.
        scales: Whether more shards help.
    """

    name: str
    needed: float
    allowed: float
    unit: str
    scales: bool

    @property
    def holds(self) -> bool:
        """Whether the shard keeps to it."""
        return self.needed <= self.allowed


@dataclass(frozen=True, slots=True)
class ChosenShards:
    """Slots and shards of a plan.

    Attributes:
        slots: Slots V.
        shards: Shards S.
        bounds: Of one shard.
        decided_by: The bounds that the next smaller number of shards would break; empty if there is none.
    """

    slots: int
    shards: int
    bounds: tuple[ShardBound, ...]
    decided_by: tuple[ShardBound, ...]


def shard_memory(kept: float, costs: UnitCosts) -> float:
    """Return the bytes of memory of a process that keeps so many pages."""
    return costs.memory_process.value + costs.memory_store.value + costs.memory_page.value * kept


def shard_disk(kept: float, costs: UnitCosts) -> float:
    """Return the bytes on disk of a process that keeps so many pages."""
    return kept * (costs.disk_page.value + costs.disk_names.value)


def window_rate(window: int, costs: UnitCosts) -> float:
    """Return the pages a second at which the outcome of a page comes just in time for the one W pages after it."""
    batch = costs.batch_pages.value
    round_s = 2 * costs.hop_s.value + batch / costs.shard_rate.value + batch / costs.resolver_rate.value
    return max(0.0, window - batch) / round_s


def shard_bounds(
    workload: Workload, machine: MachineKind, shards: int, window: int, costs: UnitCosts
) -> tuple[ShardBound, ...]:
    """Return the bounds of each of `shards` shards."""
    kept, full = workload.kept / shards, costs.full_rate.value
    memory = costs.full_memory.value * machine.memory_bytes
    reads = workload.rate * costs.reads_page.value / shards
    return (
        ShardBound(ROWS, kept, costs.shard_rows.value, "pages", scales=True),
        ShardBound(MEMORY, shard_memory(kept, costs), memory, "bytes", scales=True),
        ShardBound(DISK, shard_disk(kept, costs), costs.full_disk.value * machine.disk_bytes, "bytes", scales=True),
        ShardBound(READS, reads, full * costs.disk_reads.value, "reads/s", scales=True),
        ShardBound(RATE, workload.rate, full * costs.shard_rate.value, "pages/s", scales=False),
        ShardBound(RESOLVER, workload.rate, full * costs.resolver_rate.value, "pages/s", scales=False),
        ShardBound(WINDOW, workload.rate, full * window_rate(window, costs), "pages/s", scales=False),
    )


def choose_shards(workload: Workload, machine: MachineKind, request: ClusterRequest, costs: UnitCosts) -> ChosenShards:
    """Return the fewest shards that keep to all bounds, or those that were given.

    Raises:
        ConfigurationError: If no number of shards does, or the given one does not; the message says what would help.
    """
    broken: tuple[ShardBound, ...] = ()
    bounds: tuple[ShardBound, ...] = ()
    for slots, shards in request.choices():
        bounds = shard_bounds(workload, machine, shards, request.window, costs)
        if all(bound.holds for bound in bounds):
            return ChosenShards(slots, shards, bounds, broken)
        broken = tuple(bound for bound in bounds if not bound.holds)
    slots, shards = request.choices()[-1]
    # What more shards do not help comes first, and of that the tightest, so that one correction is enough.
    refused = [bound for bound in bounds if not bound.holds]
    first = min(refused, key=lambda bound: (bound.scales, 0 if bound.scales else bound.allowed))
    raise ConfigurationError(_refusal(first, slots, shards, request, costs))


def _refusal(bound: ShardBound, slots: int, shards: int, request: ClusterRequest, costs: UnitCosts) -> str:
    """Return what is wrong and what would help."""
    if not bound.scales:
        advice = "a longer window, or " if bound.name == WINDOW else ""
        return (
            f"rate: {bound.needed:,.0f} pages/s is more than the {bound.name} allows, {bound.allowed:,.0f} pages/s, "
            f"whatever the number of shards; plan {advice}a lower rate, or several logs with a part of the pages each"
        )
    advice = "keep fewer pages (keep)"
    if bound.name == MEMORY:
        machine = math.ceil(bound.needed / costs.full_memory.value / (1 << 30))
        advice += f", or take machines of {machine:,} GiB (machine-memory)"
    if bound.name == DISK:
        advice += ", or take machines with a larger disk (machine-disk)"
    if request.shards is not None and shards < MAX_SLOTS:
        advice += ", or leave the number of shards to the plan"
    elif slots < MAX_SLOTS:
        advice += f", or more slots, at most {MAX_SLOTS} (fixed when a log begins)"
    needed, allowed = (_amount(value, bound.unit) for value in (bound.needed, bound.allowed))
    return f"{bound.name}: each of {shards} shards needs {needed}, of {allowed} that it may use; {advice}"


def _amount(value: float, unit: str) -> str:
    return f"{value / (1 << 30):,.1f} GiB" if unit == "bytes" else f"{value:,.0f} {unit}"
