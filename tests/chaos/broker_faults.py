"""Faults of brokers: killed, stopped, frozen, restarted one after the other."""

import random
import resource
import time
from contextlib import suppress

from tests.chaos.fault_targets import Fault, FaultTargets


def kill_broker(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a broker (SIGKILL) and restart it with its data."""
    number, down_s = rng.randrange(targets.cluster.brokers), rng.choice((0.0, 1.0, 4.0))
    targets.log(f"SIGKILL broker {number}, restart after {down_s} s")
    targets.cluster.kill(number)
    time.sleep(down_s)
    targets.cluster.start(number)
    targets.log(f"broker {number} is back")


def stop_broker(targets: FaultTargets, rng: random.Random) -> None:
    """Stop a broker (SIGTERM) and restart it."""
    number = rng.randrange(targets.cluster.brokers)
    targets.log(f"SIGTERM broker {number}")
    targets.cluster.stop(number)
    targets.cluster.start(number)
    targets.log(f"broker {number} is back")


def freeze_broker(targets: FaultTargets, rng: random.Random) -> None:
    """Freeze a broker (SIGSTOP) for some seconds: it keeps its connections and answers nothing."""
    number, frozen_s = rng.randrange(targets.cluster.brokers), rng.uniform(0.5, 5)
    targets.log(f"SIGSTOP broker {number} for {frozen_s:.1f} s")
    targets.cluster.pause(number)
    time.sleep(frozen_s)
    targets.cluster.resume(number)


def fill_broker_disk(targets: FaultTargets, rng: random.Random) -> None:
    """Limit a broker's file size: its log folder fails as on a full disk; then give it room and restart it."""
    number = rng.randrange(targets.cluster.brokers)
    pid = targets.cluster.pid(number)
    if pid is None:
        return
    targets.log(f"disk full for broker {number}")
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
        time.sleep(rng.uniform(1, 4))
    targets.cluster.kill(number)
    targets.cluster.start(number)
    targets.log(f"broker {number} is back")


def roll_brokers(targets: FaultTargets, rng: random.Random) -> None:
    """Restart one broker after the other; each is back before the next one stops."""
    for number in range(targets.cluster.brokers):
        targets.log(f"rolling restart: broker {number}")
        targets.cluster.stop(number)
        targets.cluster.start(number)
        time.sleep(rng.uniform(0.5, 2))
    targets.log("rolling restart done")


BROKER_FAULTS: dict[Fault, int] = {kill_broker: 4, stop_broker: 1, freeze_broker: 2, fill_broker_disk: 1}
"""Faults of brokers with their weights. With three brokers a round also has a rolling restart."""
