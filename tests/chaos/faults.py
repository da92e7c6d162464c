"""Faults of services, their worker processes and their disks."""

import os
import random
import resource
import shutil
import signal
import time
from contextlib import suppress

from kafka.errors import KafkaError

from deploy.kafka.access_lists import needed
from tests.chaos.base_faults import take_down_in_base
from tests.chaos.damage import damage
from tests.chaos.fault_targets import Fault, FaultTargets
from tests.chaos.processes import ServiceProcess, descendants
from tests.chaos.rewinding import delete_groups, move_offsets
from tests.hangs import HANG_S


def kill_service(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a service (SIGKILL); restart it at once, or after its partitions have moved."""
    service = _any(targets, rng)
    down_s = rng.choice((0.0, rng.uniform(0, 1), targets.session_s * 1.5))
    targets.log(f"SIGKILL {service.name}, back after {down_s:.1f} s")
    service.kill()
    time.sleep(down_s)
    service.start()


def kill_all_services(targets: FaultTargets, rng: random.Random) -> None:
    """Kill all services (SIGKILL) at the same moment, as when a rack loses power."""
    targets.log("SIGKILL all services")
    for service in targets.fleet.services:
        service.kill()
    time.sleep(rng.uniform(0, 1))
    for service in targets.fleet.services:
        service.start()


def kill_pool(targets: FaultTargets, rng: random.Random) -> None:
    """Kill all processes that a service started (SIGKILL), or one of them."""
    service = _any(targets, rng)
    children = descendants(service.pid) if service.pid is not None else []
    if children and rng.random() < 0.5:
        children = [rng.choice(children)]
    targets.log(f"SIGKILL of processes that {service.name} started: {children}")
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    time.sleep(0.5)


def freeze_service(targets: FaultTargets, rng: random.Random) -> None:
    """Freeze a service (SIGSTOP) for longer than its session timeout: it resumes as a fenced member."""
    service = _any(targets, rng)
    frozen_s = targets.session_s * rng.uniform(1.2, 2.5)
    targets.log(f"SIGSTOP {service.name} for {frozen_s:.1f} s")
    service.send(signal.SIGSTOP)
    time.sleep(frozen_s)
    service.send(signal.SIGCONT)


def restart_service(targets: FaultTargets, rng: random.Random) -> None:
    """Stop a service (SIGTERM); restart it before the group notices, or after the group has rebalanced."""
    service = _any(targets, rng)
    down_s = rng.choice((0.0, targets.session_s * 1.3))
    ended = service.terminate(HANG_S)
    targets.log(f"SIGTERM {service.name}, ended {ended} with {service.exit_code}, back after {down_s:.1f} s")
    time.sleep(down_s)
    service.start()


def lose_snapshot(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a service and delete, truncate or damage part of its state, or all of it, before the restart."""
    service = _any(targets, rng)
    service.kill()
    targets.log(f"SIGKILL {service.name}; {damage(service.state, rng)}")
    service.start()


def fill_disk(targets: FaultTargets, rng: random.Random) -> None:
    """Limit a service's file size for some seconds: the effect of a full disk, without privileges."""
    service = _any(targets, rng)
    pid, limit = service.pid, rng.choice((0, 4096, 65536))
    if pid is None:
        return
    lasts_s = rng.uniform(1, 4)
    targets.log(f"disk full for {service.name} (files of at most {limit} bytes) for {lasts_s:.1f} s")
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        time.sleep(lasts_s)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def move_group_offsets(targets: FaultTargets, rng: random.Random) -> None:
    """Kill all services and move the offsets of both groups, back or on: nothing may follow from it."""
    targets.log(f"all services killed, moving the offsets of {targets.groups}")
    for service in targets.fleet.services:
        service.kill()
    targets.log(f"offsets moved: {move_offsets(targets, rng)}")
    for service in targets.fleet.services:
        service.start()


def lose_folders_and_offsets(targets: FaultTargets, _rng: random.Random) -> None:
    """Kill all services, delete all state folders and both groups."""
    targets.log("all services killed, folders and groups deleted")
    for service in targets.fleet.services:
        service.kill()
        shutil.rmtree(service.state, ignore_errors=True)
    targets.log(delete_groups(targets))
    for service in targets.fleet.services:
        service.start()


def second_group(targets: FaultTargets, rng: random.Random) -> None:
    """Start a service of another group on the same topics: it must refuse, and write nothing."""
    service = targets.serve(name=f"stranger-{rng.randrange(10**6)}", group="stranger")
    service.start()
    deadline = time.monotonic() + HANG_S
    while service.pid is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    targets.log(f"a service of another group ended with {service.exit_code}: {service.last_line}")
    if service.exit_code not in {1, 4}:  # 4: the brokers were away
        targets.complain(f"a service of another group was not refused: {service.exit_code}, {service.last_line}")
    service.kill()


def withdraw_access(targets: FaultTargets, rng: random.Random) -> None:
    """Withdraw one of the services' rights and give it back: they end, saying so, and go on once they may."""
    if targets.access is None:
        return
    grant, lasts_s = rng.choice(needed(targets.topics, targets.group)), rng.uniform(1, 6)
    targets.log(f"withdrawn for {lasts_s:.1f} s: {grant}")
    try:
        targets.access.withdraw([grant])
        time.sleep(lasts_s)
    except KafkaError as error:
        targets.log(f"perhaps not withdrawn: {error!r}")
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            targets.access.grant([grant])
        except (KafkaError, AssertionError):  # the broker is away, too
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            break
    targets.log("given back")


SERVICE_FAULTS: dict[Fault, int] = {
    kill_service: 5,
    kill_all_services: 1,
    kill_pool: 3,
    freeze_service: 4,
    restart_service: 3,
    lose_snapshot: 4,
    fill_disk: 2,
    move_group_offsets: 3,
    lose_folders_and_offsets: 2,
    second_group: 1,
    take_down_in_base: 3,
}
"""Faults of services with their weights."""


def _any(targets: FaultTargets, rng: random.Random) -> ServiceProcess:
    return rng.choice(targets.fleet.services)
