"""What goes wrong with services, their worker processes and their disks."""

import os
import random
import resource
import signal
import time
from contextlib import suppress

from benchmarks.service.damage import damage
from benchmarks.service.processes import ServiceProcess, descendants
from benchmarks.service.rewinding import put_back
from benchmarks.service.world import PATIENCE_S, Fault, FaultTargets

__all__ = ["SERVICE_FAULTS"]


def kill_service(world: FaultTargets, rng: random.Random) -> None:
    """SIGKILL of a service; it is back at once, or after its partitions have moved."""
    service = _any(world, rng)
    down_s = rng.choice((0.0, rng.uniform(0, 1), world.session_s * 1.5))
    world.tell(f"SIGKILL {service.name}, back after {down_s:.1f} s")
    service.kill()
    time.sleep(down_s)
    service.start()


def kill_all_services(world: FaultTargets, rng: random.Random) -> None:
    """SIGKILL of all services at the same moment, as when a rack loses power."""
    world.tell("SIGKILL all services")
    for service in world.fleet.services:
        service.kill()
    time.sleep(rng.uniform(0, 1))
    for service in world.fleet.services:
        service.start()


def kill_pool(world: FaultTargets, rng: random.Random) -> None:
    """SIGKILL of a service's worker processes, or of one of all that it started."""
    service = _any(world, rng)
    children = descendants(service.pid) if service.pid is not None else []
    if children and rng.random() < 0.5:
        children = [rng.choice(children)]
    world.tell(f"SIGKILL of what {service.name} started: {children}")
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    time.sleep(0.5)


def freeze_service(world: FaultTargets, rng: random.Random) -> None:
    """SIGSTOP for longer than the session timeout: a zombie, when it wakes."""
    service = _any(world, rng)
    frozen_s = world.session_s * rng.uniform(1.2, 2.5)
    world.tell(f"SIGSTOP {service.name} for {frozen_s:.1f} s")
    service.send(signal.SIGSTOP)
    time.sleep(frozen_s)
    service.send(signal.SIGCONT)


def restart_service(world: FaultTargets, rng: random.Random) -> None:
    """SIGTERM, and back before the group notices or after it has rebalanced."""
    service = _any(world, rng)
    down_s = rng.choice((0.0, world.session_s * 1.3))
    ended = service.terminate(PATIENCE_S)
    world.tell(f"SIGTERM {service.name}, ended {ended} with {service.exit_code}, back after {down_s:.1f} s")
    time.sleep(down_s)
    service.start()


def lose_snapshot(world: FaultTargets, rng: random.Random) -> None:
    """A service dies, and of its state something is lost, cut short or damaged before it is back; or all of it."""
    service = _any(world, rng)
    service.kill()
    world.tell(f"SIGKILL {service.name}; {damage(service.state, rng)}")
    service.start()


def fill_disk(world: FaultTargets, rng: random.Random) -> None:
    """For some seconds a service can make no file longer: what a full disk does, and needs no rights."""
    service = _any(world, rng)
    pid, limit = service.pid, rng.choice((0, 4096, 65536))
    if pid is None:
        return
    lasts_s = rng.uniform(1, 4)
    world.tell(f"disk full for {service.name} (files of at most {limit} bytes) for {lasts_s:.1f} s")
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        time.sleep(lasts_s)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def read_again(world: FaultTargets, rng: random.Random) -> None:
    """With all services down, the fingerprinting group is put back, so that records come into the log twice."""
    world.tell(f"all services down, group {world.group} is put back")
    for service in world.fleet.services:
        service.kill()
    world.tell(f"group put back: {put_back(world, rng)}")
    for service in world.fleet.services:
        service.start()


SERVICE_FAULTS: dict[Fault, int] = {
    kill_service: 5,
    kill_all_services: 1,
    kill_pool: 3,
    freeze_service: 4,
    restart_service: 3,
    lose_snapshot: 4,
    fill_disk: 2,
    read_again: 2,
}
"""Faults of the services' side, with their shares."""


def _any(world: FaultTargets, rng: random.Random) -> ServiceProcess:
    return rng.choice(world.fleet.services)
