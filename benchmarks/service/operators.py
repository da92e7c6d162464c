"""What people do to a running service: take pages back, change the policy."""

import random
import subprocess
import sys

from benchmarks.service.stream import Kind
from benchmarks.service.world import PATIENCE_S, Fault, FaultTargets

__all__ = ["OPERATIONS", "change_policy", "retract_page"]


def retract_page(world: FaultTargets, rng: random.Random) -> None:
    """`twinsieve retract` of a story's page, kept or not: the story may be unique once more."""
    sent = rng.choice([one for one in world.sent if one.truth.kind is Kind.STORY])
    world.loose.add(sent.truth.name)
    world.tell(f"retract {sent.key.decode()} ({sent.truth.name}): {_run(world, 'retract', sent.key.decode())}")


def change_policy(world: FaultTargets, rng: random.Random) -> None:
    """`twinsieve policy set`: another radius and another action, from here on."""
    options = ["--k", str(rng.randint(2, 7)), "--action", rng.choice(("flag", "drop", "pass"))]
    world.tell(f"policy set {options}: {_run(world, 'policy', 'set', *options)}")


OPERATIONS: dict[Fault, int] = {retract_page: 2, change_policy: 1}
"""Operations, with their shares."""


def _run(world: FaultTargets, *command: str) -> str:
    """Run a command until it works, and return what it said. Brokers may be away."""
    whole = [sys.executable, "-m", "dedup_service.interfaces.cli", *command]
    whole += ["--bootstrap", world.cluster.bootstrap, "--prefix", world.topics.prefix]
    for _ in range(5):
        done = subprocess.run(whole, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
        if done.returncode != 4:  # 4: no broker answered
            break
    return f"{done.returncode} {done.stdout.strip()} {done.stderr.strip()[-300:]}"
