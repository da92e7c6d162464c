"""Rewind a consumer group while the services are down, so that its records are read a second time."""

import random
import time

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from benchmarks.service.fault_targets import PATIENCE_S, FaultTargets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import UnreachableError

__all__ = ["rewind_group"]

MAX_RECORDS = 200


def rewind_group(targets: FaultTargets, rng: random.Random) -> str:
    """Commit earlier offsets for the fingerprinting group once it is empty; return a description."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _alter(targets, rng)
        except (KafkaError, RuntimeError, UnreachableError) as error:
            if time.monotonic() > deadline:
                return f"given up: {error!r}"
            time.sleep(0.3)


def _alter(targets: FaultTargets, rng: random.Random) -> str:
    client = connect(KafkaAdminClient, Connection(targets.cluster.bootstrap), bootstrap_timeout_ms=3000)
    try:
        committed = client.list_group_offsets(targets.group)[targets.group]
        before = {at: found.offset for at, found in committed.items() if found.offset > 0}
        after = {at: rng.randrange(max(0, offset - MAX_RECORDS), offset) for at, offset in before.items()}
        answer: dict[TopicPartition, type[KafkaError]] = client.alter_group_offsets(
            targets.group, {at: OffsetAndMetadata(offset, "", -1) for at, offset in after.items()}
        )
        refused = {at: error.__name__ for at, error in answer.items() if error is not NoError}
        if refused:
            raise RuntimeError(f"refused: {refused}")
        return ", ".join(f"{at.partition}: {before[at]} → {offset}" for at, offset in after.items()) or "nothing yet"
    finally:
        client.close()
