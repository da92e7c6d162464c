"""What a plan is asked for: the pages, the machines, and the cluster as far as it is given.

Invariant: values are checked when they are made, so the model need not.
"""

import math
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import DEFAULT_LAYOUT

MAX_SLOTS = 64
"""Slots of an index at most (`core.rules.layout`), and so shards."""

_POWERS = tuple(1 << power for power in range(MAX_SLOTS.bit_length()))
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The pages of a crawl.

    Attributes:
        pages: Pages in the log in the end, above 0.
        rate: Pages a second, above 0.
        copies: Share of pages that are copies and so are not kept, 0 to 1.
        keep: Bounds of expiry.
        text_letters: Letters of a page's text, 1 or more.
        html: Whether pages come as HTML of 60 KB; their texts are then extracted first.

    Raises:
        ConfigurationError: If a value is out of range.

    Example:
        >>> Workload(pages=1e10, rate=10_000, copies=0.6).kept
        4000000000.0
    """

    pages: float
    rate: float
    copies: float = 0.0
    keep: Keep = KEEP_ALL
    text_letters: int = 700
    html: bool = False

    def __post_init__(self) -> None:
        for name, value in (("pages", self.pages), ("rate", self.rate), ("text letters", self.text_letters)):
            if not (math.isfinite(value) and value > 0):
                raise ConfigurationError(f"{name}: a plan needs a number above 0, got {value:g}")
        if not 0 <= self.copies <= 1:
            raise ConfigurationError(f"copies: a share is from 0 to 1, as .6 or 60%, got {self.copies:g}")

    @property
    def kept(self) -> float:
        """Pages that are entries of the index in the end."""
        bounds = [self.pages * (1 - self.copies)]
        if self.keep.max_age_minutes is not None:
            bounds.append(self.keep.max_age_minutes * _MINUTE_S * self.rate * (1 - self.copies))
        if self.keep.max_pages is not None:
            bounds.append(self.keep.max_pages)
        return min(bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineKind:
    """The machines that everything runs on.

    Attributes:
        memory_bytes: Memory, above 0.
        disk_bytes: Disk, above 0.
        cores: Cores, 1 or more.
        network_bytes: Bytes a second of the network in each direction, above 0.

    Raises:
        ConfigurationError: If a value is out of range.
    """

    memory_bytes: int = 32 << 30
    disk_bytes: int = 8 << 40
    cores: int = 8
    network_bytes: float = 1.25e9

    def __post_init__(self) -> None:
        sizes = (self.memory_bytes, self.disk_bytes, self.cores, self.network_bytes)
        if not all(0 < size < math.inf for size in sizes):
            raise ConfigurationError(
                f"a machine has memory, disk, cores and a network above 0, got {self.memory_bytes:,} and "
                f"{self.disk_bytes:,} bytes, {self.cores} cores and {self.network_bytes:,g} bytes/s"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The cluster, as far as it is given; None leaves the choice to the plan.

    Attributes:
        slots: Slots V of the index: 1, 2, 4 … 64.
        shards: Shards S, which divide the slots.
        replicas: Processes that hold the same shard, 1 or more.
        window: Pages by which the index lags behind the log, 1 or more.

    Raises:
        ConfigurationError: If a value is out of range, or S does not divide V.
    """

    slots: int | None = None
    shards: int | None = None
    replicas: int = 2
    window: int = DEFAULT_LAYOUT.window

    def __post_init__(self) -> None:
        powers = f"{', '.join(map(str, _POWERS[:-1]))} or {MAX_SLOTS}"
        if self.replicas < 1 or self.window < 1:
            raise ConfigurationError(
                f"a cluster has 1 replica or more and a window of 1 page or more, got {self.replicas} and {self.window}"
            )
        if self.slots is not None and self.slots not in _POWERS:
            raise ConfigurationError(f"slots: an index has {powers}, got {self.slots}")
        if self.shards is None:
            return
        if self.shards > MAX_SLOTS:
            raise ConfigurationError(
                f"shards: an index has {MAX_SLOTS} slots at most, each in one shard, got {self.shards} shards; "
                f"give at most {MAX_SLOTS}, larger machines, or fewer pages to keep"
            )
        if self.slots is None and self.shards not in _POWERS:
            raise ConfigurationError(f"shards: give {powers}, which divide the slots of an index, got {self.shards}")
        if self.slots is not None and (self.shards < 1 or self.slots % self.shards):
            divisors = ", ".join(str(one) for one in _POWERS if one <= self.slots)
            raise ConfigurationError(
                f"shards: each has the same number of slots, but {self.shards} shards do not divide {self.slots} "
                f"slots; give one of {divisors} shards, or other slots"
            )

    def choices(self) -> tuple[tuple[int, int], ...]:
        """Return the (slots, shards) that this leaves open, shards ascending.

        Without a given number, there are as many slots as shards, and at least those of a new log (8).
        """
        if self.shards is not None:
            return ((self.slots or max(DEFAULT_LAYOUT.slots, self.shards), self.shards),)
        most = self.slots or MAX_SLOTS
        return tuple((self.slots or max(DEFAULT_LAYOUT.slots, one), one) for one in _POWERS if one <= most)
