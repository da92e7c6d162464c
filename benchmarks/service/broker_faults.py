"""Faults of brokers: killed, stopped, frozen, restarted one after the other."""

import random
import time

from benchmarks.service.fault_targets import Fault, FaultTargets

__all__ = ["BROKER_FAULTS", "roll_brokers"]


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


def roll_brokers(targets: FaultTargets, rng: random.Random) -> None:
    """Restart one broker after the other; each is back before the next one stops."""
    for number in range(targets.cluster.brokers):
        targets.log(f"rolling restart: broker {number}")
        targets.cluster.stop(number)
        targets.cluster.start(number)
        time.sleep(rng.uniform(0.5, 2))
    targets.log("rolling restart done")


BROKER_FAULTS: dict[Fault, int] = {kill_broker: 4, stop_broker: 1, freeze_broker: 2}
"""Faults of brokers with their weights. With three brokers a round also has a rolling restart."""
