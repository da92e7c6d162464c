"""The type of a fault, and the processes and topics that a fault may affect.

A fault is over when its function returns: by then it has restarted all that it stopped. So the faults of one
lane follow each other, and may overlap with those of the other lane.
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
"""How long a fault waits for a service to end, or for the brokers to give up a group."""


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """The parts of a round that faults act on.

    session_s: session timeout of the group. log: writes a line of history. sent: all records of the round.
    loose: names of stories that may be unique more than once.
    """

    cluster: Cluster
    fleet: Fleet
    topics: Topics
    group: str
    session_s: float
    log: Callable[[str], None]
    sent: Sequence[Sent] = ()
    loose: set[str] = field(default_factory=set)


Fault = Callable[[FaultTargets, random.Random], None]
