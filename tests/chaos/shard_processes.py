"""The processes of a service whose index is divided: fingerprinters, shards with replicas, resolvers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dedup_service.core.rules.layout import IndexLayout
from tests.chaos.network import can_isolate

FINGERPRINTER, SHARD, RESOLVER = "fingerprinter", "shard", "resolver"

SLOTS = 8
SHORT_WINDOW, WINDOW = 64, 512
"""No message of the log may have more pages: a fingerprinter that was away appends 500 in one, or those of
`tests.chaos.small_messages`. Shards answer for what is further back, so a round needs more pages."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does. kind: FINGERPRINTER, SHARD or RESOLVER. options: of `serve`, beside those of all."""

    name: str
    kind: str
    options: Sequence[str]

    @property
    def steps(self) -> str:
        """Its --steps."""
        return self.options[self.options.index("--steps") + 1]


def shard_role(index: int, shards: int, replica: int = 1) -> Role:
    """Return a replica of shard `index`, counted from 1."""
    name = f"shard-{index}of{shards}-{replica}"
    return Role(name, SHARD, ["--steps", "shard", "--shard", f"{index}/{shards}"])


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """How a service is divided. keep: bounds of the kept pages, as of `serve --keep`; None: all are kept.

    isolated: name of the process with a network of its own, None if there is none. small: messages are small
    (`tests.chaos.small_messages`).
    """

    shards: int
    replicas: int
    fingerprinters: int = 1
    resolvers: int = 1
    keep: str | None = None
    isolated: str | None = None
    small: bool = True

    @classmethod
    def draw(cls, rng: random.Random, shards: int, replicas: int) -> "ShardPlan":
        """Draw what is not given."""
        keep = str(rng.randint(150, 600)) if rng.random() < 0.25 else None
        plan = cls(shards, replicas, rng.randint(1, 2), rng.choice((1, 1, 2)), keep)
        isolated = rng.choice([role.name for role in plan.roles()]) if rng.random() < 0.6 and can_isolate() else None
        return cls(shards, replicas, plan.fingerprinters, plan.resolvers, keep, isolated, small=rng.random() < 0.75)

    @property
    def layout(self) -> IndexLayout:
        """The layout with which the log begins."""
        return IndexLayout(slots=SLOTS, window=SHORT_WINDOW if self.small else WINDOW)

    @property
    def module(self) -> str:
        """The module of the command line."""
        return "tests.chaos.small_messages" if self.small else "tests.impatient_serve"

    def roles(self) -> list[Role]:
        """Return what each process does."""
        keep = [] if self.keep is None else ["--keep", self.keep]
        deciding = ["--steps", "decide", "--shards", str(self.shards), "--verify"]
        fingerprinters = [
            Role(f"fingerprinter-{number}", FINGERPRINTER, ["--steps", "fingerprint", *keep])
            for number in range(1, self.fingerprinters + 1)
        ]
        shards = [
            shard_role(index, self.shards, replica)
            for index in range(1, self.shards + 1)
            for replica in range(1, self.replicas + 1)
        ]
        resolvers = [
            Role(f"resolver-{number}", RESOLVER, [*deciding, *keep]) for number in range(1, self.resolvers + 1)
        ]
        return [*fingerprinters, *shards, *resolvers]
