"""Move the offsets of both consumer groups while the services are down, or delete the groups."""

import random
import time
from collections.abc import Callable
from contextlib import closing

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import UnreachableError
from tests.chaos.fault_targets import FaultTargets
from tests.hangs import HANG_S

MAX_RECORDS = 200


def move_offsets(targets: FaultTargets, rng: random.Random) -> str:
    """Commit other offsets for both groups once they are empty, earlier or later ones; return a description."""
    return _when_empty(targets, lambda client: ", ".join(_move(client, group, rng) for group in targets.groups))


def delete_groups(targets: FaultTargets) -> str:
    """Delete both groups once they are empty; return a description."""
    return _when_empty(targets, lambda client: _delete(client, targets.groups))


def _when_empty(targets: FaultTargets, action: Callable[[KafkaAdminClient], str]) -> str:
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            with closing(_admin(targets)) as client:
                return action(client)
        except (KafkaError, RuntimeError, UnreachableError) as error:
            if time.monotonic() > deadline:
                return f"given up: {error!r}"
            time.sleep(0.3)


def _admin(targets: FaultTargets) -> KafkaAdminClient:
    return connect(KafkaAdminClient, Connection(targets.bootstrap), bootstrap_timeout_ms=3000)


def _move(client: KafkaAdminClient, group: str, rng: random.Random) -> str:
    committed = {at: found.offset for at, found in client.list_group_offsets(group)[group].items()}
    after = {at: _moved(offset, rng) for at, offset in committed.items()}
    answer = client.alter_group_offsets(group, {at: OffsetAndMetadata(offset, "", -1) for at, offset in after.items()})
    refused = {at: error.__name__ for at, error in answer.items() if error.errno}
    if refused:
        raise RuntimeError(f"refused: {refused}")
    return f"{group}: {[(at.partition, committed[at], offset) for at, offset in after.items()]}"


def _moved(offset: int, rng: random.Random) -> int:
    return rng.choice((0, max(0, offset - rng.randint(1, MAX_RECORDS)), offset + rng.randint(1, MAX_RECORDS)))


def _delete(client: KafkaAdminClient, groups: tuple[str, ...]) -> str:
    answers = client.delete_groups(list(groups))
    if any(str(answer) not in {"OK", "GroupIdNotFoundError"} for answer in answers.values()):
        raise RuntimeError(f"refused: {answers}")
    return f"deleted: {answers}"
