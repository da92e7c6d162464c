"""The type of a fault, and the processes and topics that a fault may affect.

A fault is over when its function returns: by then it has restarted all that it stopped. So the faults of one
lane follow each other, and may overlap with those of the other lane.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster
from deploy.kafka.access_lists import AccessLists
from tests.chaos.processes import Fleet, ServiceProcess
from tests.chaos.shard_processes import Role
from tests.crawls.stream import Sent

if TYPE_CHECKING:
    from tests.chaos.base_faults import RoundBase


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """The parts of a round that faults act on.

    session_s: session timeout of the group. log: writes a line of history. sent: all records of the round.
    loose: names of stories that may be unique more than once, and of URLs whose visits may change places.
    extra: records that faults published beside the stream, or failed to. gone: records that they deleted.
    serve: starts one more `serve` process, with options that replace those of the round, and returns it.
    add: makes another process of a service with shards. complain: notes a sentence about what must not be.
    access: lists of what the services may do, if there are any. empty_log: messages that the log has before a service
    begins it: its layout, or a policy with bases. base: what the log goes on from, if anything.
    """

    cluster: Cluster
    fleet: Fleet
    topics: Topics
    group: str
    session_s: float
    log: Callable[[str], None]
    sent: Sequence[Sent] = ()
    loose: set[str] = field(default_factory=set)
    extra: list[Sent] = field(default_factory=list)
    gone: dict[Source, ConsumerRecord] = field(default_factory=dict)
    serve: Callable[..., ServiceProcess] = field(kw_only=True)
    add: Callable[[Role], ServiceProcess] = field(kw_only=True)
    complain: Callable[[str], None] = field(kw_only=True)
    access: AccessLists | None = None
    empty_log: int = 0
    base: "RoundBase | None" = None

    @property
    def bootstrap(self) -> str:
        """The addresses for a super user: those of the brokers themselves if the services have access lists."""
        return self.cluster.inner_bootstrap if self.access else self.cluster.bootstrap

    @property
    def groups(self) -> tuple[str, str]:
        """The consumer groups of the two steps."""
        return f"{self.topics.prefix}{self.group}", f"{self.topics.prefix}{self.group}.decide"


Fault = Callable[[FaultTargets, random.Random], None]
