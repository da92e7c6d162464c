"""Put a consumer group back, as an operator would with the services down: its records are then read a second time."""

import random
import time

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from benchmarks.service.world import PATIENCE_S, FaultTargets

__all__ = ["put_back"]

MAX_RECORDS = 200


def put_back(world: FaultTargets, rng: random.Random) -> str:
    """Commit earlier offsets for the fingerprinting group, as soon as the brokers hold it for empty; say which."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _alter(world, rng)
        except (KafkaError, RuntimeError) as error:
            if time.monotonic() > deadline:
                return f"given up: {error!r}"
            time.sleep(0.3)


def _alter(world: FaultTargets, rng: random.Random) -> str:
    client = KafkaAdminClient(bootstrap_servers=world.cluster.bootstrap.split(","), bootstrap_timeout_ms=3000)
    try:
        committed = client.list_group_offsets(world.group)[world.group]
        before = {at: found.offset for at, found in committed.items() if found.offset > 0}
        after = {at: rng.randrange(max(0, offset - MAX_RECORDS), offset) for at, offset in before.items()}
        answer: dict[TopicPartition, type[KafkaError]] = client.alter_group_offsets(
            world.group, {at: OffsetAndMetadata(offset, "", -1) for at, offset in after.items()}
        )
        refused = {at: error.__name__ for at, error in answer.items() if error is not NoError}
        if refused:
            raise RuntimeError(f"refused: {refused}")
        return ", ".join(f"{at.partition}: {before[at]} → {offset}" for at, offset in after.items()) or "nothing yet"
    finally:
        client.close()
