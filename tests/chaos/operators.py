"""Operator actions on a running service: retract a page, change the policy."""

import random
import subprocess
import sys

from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.fault_targets import Fault, FaultTargets
from tests.crawls.stream import Kind
from tests.hangs import HANG_S


def retract_page(targets: FaultTargets, rng: random.Random) -> None:
    """Run `twinsieve retract` on a story's page, kept or not: the story may become unique again."""
    sent = rng.choice([one for one in targets.sent if one.truth.kind is Kind.STORY])
    targets.loose.add(sent.truth.name)
    url = sent.key.decode()
    targets.log(f"retract {url} ({sent.truth.name}): {operate(targets.bootstrap, targets.topics, 'retract', url)}")


def change_policy(targets: FaultTargets, rng: random.Random) -> None:
    """Run `twinsieve policy set`: another radius and action for all later pages."""
    options = ["--profile", f"balanced:{rng.randint(2, 7)}", "--action", rng.choice(("flag", "drop", "pass"))]
    targets.log(f"policy set {options}: {operate(targets.bootstrap, targets.topics, 'policy', 'set', *options)}")


OPERATIONS: dict[Fault, int] = {retract_page: 2, change_policy: 1}
"""Operator actions with their weights."""


def operate(bootstrap: str, topics: Topics, *command: str) -> str:
    """Run a command, up to five times while no broker answers, and return its exit code and output."""
    whole = [sys.executable, "-m", "dedup_service.interfaces.cli", *command]
    whole += ["--bootstrap", bootstrap, "--prefix", topics.prefix]
    for _ in range(5):
        done = subprocess.run(whole, capture_output=True, text=True, timeout=HANG_S, check=False)
        if done.returncode != 4:  # 4: no broker answered
            break
    return f"{done.returncode} {done.stdout.strip()} {done.stderr.strip()[-300:]}"
