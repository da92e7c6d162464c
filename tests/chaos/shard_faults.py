"""Faults of a service whose index is divided: of its shards and their folders, its resolver, one process's network.

Faults of any process (`tests.chaos.faults`) strike here, too.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dedup_service.core.log_records import offset_of
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER
from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError
from dedup_service.runtime.store.page_files import committed
from tests.chaos.base_faults import take_down_in_base
from tests.chaos.fault_targets import Fault, FaultTargets
from tests.chaos.faults import (
    kill_all_services,
    lose_folders_and_offsets,
    lose_snapshot,
    move_group_offsets,
    restart_service,
)
from tests.chaos.processes import ServiceProcess
from tests.chaos.shard_processes import FINGERPRINTER, RESOLVER, SHARD, SLOTS, shard_role
from tests.hangs import HANG_S

_SLOW_TURN_S = 0.5


def kill_replica(targets: FaultTargets, rng: random.Random) -> None:
    """Kill one replica of a shard (SIGKILL), back at once or after some seconds."""
    _kill(targets, rng, [_any(targets, rng, SHARD)])


def kill_shard(targets: FaultTargets, rng: random.Random) -> None:
    """Kill all replicas of a shard (SIGKILL): nothing is decided until one is back."""
    number = _number(_any(targets, rng, SHARD))
    _kill(targets, rng, [service for service in _of_kind(targets, SHARD) if _number(service) == number])


def kill_resolver(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a resolver (SIGKILL)."""
    _kill(targets, rng, [_any(targets, rng, RESOLVER)])


def kill_fingerprinter(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a fingerprinter (SIGKILL)."""
    _kill(targets, rng, [_any(targets, rng, FINGERPRINTER)])


def freeze_shard(targets: FaultTargets, rng: random.Random) -> None:
    """Freeze a replica (SIGSTOP): it answers to old messages when it resumes."""
    _freeze(targets, rng, SHARD)


def freeze_resolver(targets: FaultTargets, rng: random.Random) -> None:
    """Freeze a resolver (SIGSTOP) for longer than its session: another one, if there is one, goes on."""
    _freeze(targets, rng, RESOLVER)


def freeze_fingerprinter(targets: FaultTargets, rng: random.Random) -> None:
    """Freeze a fingerprinter (SIGSTOP)."""
    _freeze(targets, rng, FINGERPRINTER)


def slow_shard(targets: FaultTargets, rng: random.Random) -> None:
    """Let a replica, or all of a shard, run for a tenth of the time (SIGSTOP and SIGCONT in turn)."""
    one = _any(targets, rng, SHARD)
    slow = [one] if rng.random() < 0.5 else [s for s in _of_kind(targets, SHARD) if _number(s) == _number(one)]
    lasts_s = rng.uniform(3, 8)
    targets.log(f"slow for {lasts_s:.1f} s: {[service.name for service in slow]}")
    until = time.monotonic() + lasts_s
    while time.monotonic() < until:
        for service in slow:
            service.send(signal.SIGSTOP)
        time.sleep(0.9 * _SLOW_TURN_S)
        for service in slow:
            service.send(signal.SIGCONT)
        time.sleep(0.1 * _SLOW_TURN_S)


def lose_folder(targets: FaultTargets, rng: random.Random) -> None:
    """Kill a process and delete its folder: it begins again from the topics."""
    service = _any(targets, rng, SHARD, SHARD, RESOLVER)
    targets.log(f"SIGKILL {service.name}; its folder was deleted")
    service.kill()
    shutil.rmtree(service.state, ignore_errors=True)
    service.start()


def old_folder(targets: FaultTargets, rng: random.Random) -> None:
    """Put the folder of a process back as it was some seconds ago, as from a backup."""
    service = _any(targets, rng, SHARD, SHARD, RESOLVER)
    backup, later_s = service.state.with_name(f"{service.name}.backup"), rng.uniform(2, 8)
    service.kill()
    shutil.rmtree(backup, ignore_errors=True)
    if service.state.exists():
        shutil.copytree(service.state, backup, symlinks=True)
    service.start()
    time.sleep(later_s)
    targets.log(f"SIGKILL {service.name}; its folder is that of {later_s:.1f} s ago, {_files(backup)} files")
    service.kill()
    shutil.rmtree(service.state, ignore_errors=True)
    if backup.exists():
        backup.rename(service.state)
    service.start()


def hold_network(targets: FaultTargets, rng: random.Random) -> None:
    """Let a process and the brokers lose every packet between them for some seconds."""
    service = _isolated(targets)
    if service is None or service.gate is None:
        targets.log("no process has a network of its own")
        return
    lasts_s = rng.uniform(1, 3 * targets.session_s)
    targets.log(f"network of {service.name} held for {lasts_s:.1f} s")
    service.gate.hold()
    time.sleep(lasts_s)
    service.gate.release()


def cut_network(targets: FaultTargets, rng: random.Random) -> None:
    """Close all connections of a process to the brokers, and refuse new ones for some seconds."""
    service = _isolated(targets)
    if service is None or service.gate is None:
        targets.log("no process has a network of its own")
        return
    lasts_s = rng.choice((0.0, rng.uniform(0, 3 * targets.session_s)))
    targets.log(f"network of {service.name} cut for {lasts_s:.1f} s")
    service.gate.cut()
    time.sleep(lasts_s)
    service.gate.release()


def reshard(targets: FaultTargets, rng: random.Random) -> None:
    """Spread the index over twice as many shards: start these, let the resolvers ask them, stop the old ones.

    The new shards are copies of the old ones, or, in half of the rounds, begin with empty folders and read everything.
    """
    old = _of_kind(targets, SHARD)
    before = int(_number(old[0]).split("/")[1])
    shards = 2 * before
    if shards > SLOTS:
        targets.log("the index is spread over all slots")
        return
    new = [targets.add(shard_role(index, shards)) for index in range(1, shards + 1)]
    reached = -1
    if rng.random() < 0.5:
        for index, service in enumerate(new, 1):
            source = rng.choice([one for one in old if _number(one) == f"{(index - 1) % before + 1}/{before}"])
            reached = max(reached, _copy(targets, source, service))
    targets.log(f"from {before} to {shards} shards; those that were copied begin behind message {reached} at most")
    for service in new:
        targets.fleet.services.append(service)
        service.start()
    time.sleep(rng.uniform(0, 5))
    for resolver in _of_kind(targets, RESOLVER):
        if reached < 0:
            resolver.kill()
        else:
            _stop_behind(targets, resolver, reached)
        resolver.arguments = _with_shards(resolver.arguments, shards)
        resolver.start()
    for service in old:
        ended = service.terminate(HANG_S)
        if not ended or service.exit_code not in {0, 143, -signal.SIGTERM}:
            targets.complain(f"{service.name} ended {ended} with {service.exit_code}: {service.last_line}")
        targets.fleet.services.remove(service)
    targets.log(f"{len(old)} processes of the old shards were stopped")
    _refuse_other_number(targets, rng.choice(old), shards)


def _refuse_other_number(targets: FaultTargets, stopped: ServiceProcess, shards: int) -> None:
    """Start a shard of another number of shards on the folder of one that was stopped: it must refuse the folder."""
    other = targets.add(shard_role(1, shards, replica=0))
    other.state = stopped.state
    other.start()
    ended = other.ended_within(HANG_S)
    targets.log(f"a shard of {shards} with the folder of {stopped.name} ended with {other.exit_code}")
    if not ended or other.exit_code != ExitCode.USAGE:
        targets.complain(f"the folder of {stopped.name} was not refused: {other.exit_code} {other.last_line}")


def _copy(targets: FaultTargets, source: ServiceProcess, new: ServiceProcess) -> int:
    """Run `twinsieve shard copy`; return the message up to which the copy is, -1 if the new shard begins empty."""
    options = [str(source.state), "--shard", _number(new), "--state", str(new.state)]
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "shard", "copy", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode == 0:
        return int(json.loads(done.stdout)["offset"])
    targets.log(f"{source.name} was not copied: {done.returncode} {done.stderr.strip()[-300:]}")
    if "no snapshot" not in done.stderr and "No such command" not in done.stderr:
        targets.complain(f"shard copy of {source.name} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    shutil.rmtree(new.state, ignore_errors=True)
    return -1


def _stop_behind(targets: FaultTargets, resolver: ServiceProcess, message: int) -> None:
    """Stop a resolver once its snapshot is not before a message: copies of shards answer only from there on."""
    deadline = time.monotonic() + HANG_S
    while True:
        resolver.terminate(HANG_S)
        if _snapshot_at(resolver) >= message or time.monotonic() > deadline:
            break
        resolver.start()
        time.sleep(1)
    targets.log(f"{resolver.name} stopped with {resolver.exit_code}, at message {_snapshot_at(resolver)}")


def _snapshot_at(service: ServiceProcess) -> int:
    """Return the message of the last snapshot of a process that is stopped, -1 if there is none."""
    try:
        manifest = committed(service.state / PAGES_FOLDER)
    except (StoreDamagedError, ForeignStoreError):
        return -1
    return -1 if manifest is None else offset_of(manifest.sequence)


def _with_shards(arguments: Sequence[str], shards: int) -> list[str]:
    """Return the arguments of a resolver with another number of shards."""
    place = list(arguments).index("--shards") + 1
    return [*arguments[:place], str(shards), *arguments[place + 1 :]]


SHARD_FAULTS: dict[Fault, int] = {
    kill_replica: 5,
    kill_shard: 4,
    kill_resolver: 5,
    kill_fingerprinter: 2,
    freeze_shard: 4,
    freeze_resolver: 3,
    freeze_fingerprinter: 1,
    slow_shard: 3,
    lose_folder: 4,
    old_folder: 6,
    restart_service: 3,
    lose_snapshot: 3,
    kill_all_services: 1,
    move_group_offsets: 1,
    lose_folders_and_offsets: 1,
    take_down_in_base: 4,
}
"""Faults of processes, with their weights."""

NETWORK_FAULTS: dict[Fault, int] = {hold_network: 2, cut_network: 1}
"""Faults of the network of one process, with their weights."""


def _kill(targets: FaultTargets, rng: random.Random, services: list[ServiceProcess]) -> None:
    down_s = rng.choice((0.0, rng.uniform(0, 1), targets.session_s * 1.5))
    targets.log(f"SIGKILL {[service.name for service in services]}, back after {down_s:.1f} s")
    for service in services:
        service.kill()
    time.sleep(down_s)
    for service in services:
        service.start()


def _freeze(targets: FaultTargets, rng: random.Random, kind: str) -> None:
    service = _any(targets, rng, kind)
    frozen_s = targets.session_s * rng.uniform(0.5, 3)
    targets.log(f"SIGSTOP {service.name} for {frozen_s:.1f} s")
    service.send(signal.SIGSTOP)
    time.sleep(frozen_s)
    service.send(signal.SIGCONT)


def _of_kind(targets: FaultTargets, *kinds: str) -> list[ServiceProcess]:
    return [service for service in targets.fleet.services if service.kind in kinds]


def _any(targets: FaultTargets, rng: random.Random, *kinds: str) -> ServiceProcess:
    return rng.choice(_of_kind(targets, rng.choice(kinds)))


def _number(shard: ServiceProcess) -> str:
    """Return the number of a shard as it was given, "1/4"."""
    return list(shard.arguments)[list(shard.arguments).index("--shard") + 1]


def _isolated(targets: FaultTargets) -> ServiceProcess | None:
    return next((service for service in targets.fleet.services if service.gate is not None), None)


def _files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))
