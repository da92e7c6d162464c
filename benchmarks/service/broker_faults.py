"""What goes wrong with brokers."""

import random
import time

from benchmarks.service.world import Fault, FaultTargets

__all__ = ["BROKER_FAULTS", "roll_brokers"]


def kill_broker(world: FaultTargets, rng: random.Random) -> None:
    """SIGKILL of a broker, restarted with its data."""
    number, down_s = rng.randrange(world.cluster.brokers), rng.choice((0.0, 1.0, 4.0))
    world.tell(f"SIGKILL broker {number}, restart after {down_s} s")
    world.cluster.kill(number)
    time.sleep(down_s)
    world.cluster.start(number)
    world.tell(f"broker {number} is back")


def stop_broker(world: FaultTargets, rng: random.Random) -> None:
    """SIGTERM of a broker, restarted."""
    number = rng.randrange(world.cluster.brokers)
    world.tell(f"SIGTERM broker {number}")
    world.cluster.stop(number)
    world.cluster.start(number)
    world.tell(f"broker {number} is back")


def freeze_broker(world: FaultTargets, rng: random.Random) -> None:
    """SIGSTOP of a broker: it keeps its connections and answers nothing."""
    number, frozen_s = rng.randrange(world.cluster.brokers), rng.uniform(0.5, 5)
    world.tell(f"SIGSTOP broker {number} for {frozen_s:.1f} s")
    world.cluster.pause(number)
    time.sleep(frozen_s)
    world.cluster.resume(number)


def roll_brokers(world: FaultTargets, rng: random.Random) -> None:
    """A rolling restart: one broker after the other, each back before the next goes."""
    for number in range(world.cluster.brokers):
        world.tell(f"rolling restart: broker {number}")
        world.cluster.stop(number)
        world.cluster.start(number)
        time.sleep(rng.uniform(0.5, 2))
    world.tell("rolling restart done")


BROKER_FAULTS: dict[Fault, int] = {kill_broker: 4, stop_broker: 1, freeze_broker: 2}
"""Faults of the brokers' side, with their shares; with three brokers there is a rolling restart beside them."""
