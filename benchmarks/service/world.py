"""What a fault may touch, and what a fault is.

A fault begins, lasts, and is over when its function returns: whatever it stopped runs again. So faults of one lane
follow each other, and those of the other lane may strike in the middle of them.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.service.processes import Fleet
from benchmarks.service.stream import Sent
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster

__all__ = ["PATIENCE_S", "Fault", "FaultTargets"]

PATIENCE_S = 40.0
"""How long a fault waits for what should happen by itself: a service that ends, a group that is given up."""


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """session_s: after which a group gives a member up. tell: writes a line of history.

    sent: all records of the round. loose: names of stories that may be unique more than once.
    """

    cluster: Cluster
    fleet: Fleet
    topics: Topics
    group: str
    session_s: float
    tell: Callable[[str], None]
    sent: Sequence[Sent] = ()
    loose: set[str] = field(default_factory=set)


Fault = Callable[[FaultTargets, random.Random], None]
