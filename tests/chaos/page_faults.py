"""Faults of what is in `pages`: hostile records, retention, more partitions, odd clocks, one slow partition.

Each publishes with its own producer and notes what it published or deleted, so that the round can check it.
"""

import json
import random
import time
from contextlib import closing

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from dedup_service.core.log_records import Source
from tests.chaos.fault_targets import Fault, FaultTargets
from tests.chaos.reading import reader
from tests.crawls.stream import Kind, RecordTruth, Sent
from tests.crawls.texts import Writer

HEADER_BYTES = 34 << 20
DAY_MS = 86_400_000


def hostile_records(targets: FaultTargets, rng: random.Random) -> None:
    """Publish records whose headers or keys are far larger than their values."""
    number = rng.randrange(10**9)
    records = [
        _poison(f"hostile-{number}-header", b"1", (("zeros", bytes(HEADER_BYTES)),)),
        _poison(f"hostile-{number}-many", b"{}", tuple((f"h{at}", b"") for at in range(20_000))),
        _poison(f"hostile-{number}-key" + "k" * (4 << 20), b'{"url": "https://hostile.example/"}'),
    ]
    targets.log(f"hostile records {number}")
    publish(targets, records)


def odd_clocks(targets: FaultTargets, rng: random.Random) -> None:
    """Publish pages whose timestamps are years away, as by a machine with a wrong clock."""
    now = int(time.time() * 1000)
    for days in (3650, -2):
        sent = _story(rng, f"clock-{rng.randrange(10**9)}")
        targets.log(f"a page with a timestamp {days} days from now: {sent.truth.name}")
        publish(targets, [sent], timestamp_ms=now + days * DAY_MS)


def slow_partition(targets: FaultTargets, rng: random.Random) -> None:
    """Publish large pages to one partition, whose other pages have to wait for them."""
    records = [_story(rng, f"large-{rng.randrange(10**9)}", characters=300_000) for _ in range(10)]
    targets.log(f"ten large pages to one partition: {records[0].truth.name} …")
    publish(targets, records, partition=rng.randrange(2))


def expire_pages(targets: FaultTargets, rng: random.Random) -> None:
    """Delete the older records of one partition, answered or not, as retention does between the steps.

    Nothing is deleted before the log has begun: what went before that is nobody's to miss.
    """
    partition = rng.randrange(4)
    try:
        with (
            closing(_admin(targets)) as client,
            closing(reader(targets.bootstrap, [targets.topics.pages])) as pages,
        ):
            place = TopicPartition(targets.topics.pages, partition)
            log = TopicPartition(targets.topics.fingerprints, 0)
            if pages.end_offsets([log])[log] <= targets.empty_log:
                targets.log("nothing deleted: the log has not begun")
                return
            end = pages.end_offsets([place])[place]
            pages.assign([place])
            pages.seek_to_beginning()
            while pages.position(place) < end:
                for record in pages.poll(timeout_ms=500).get(place, ()):
                    if record.offset < end:
                        targets.gone.setdefault(Source(record.topic, record.partition, record.offset), record)
            client.delete_records({place: end})
    except (KafkaError, TimeoutError, AssertionError, LookupError) as error:
        targets.log(f"nothing deleted: {error!r}")
        return
    targets.log(f"deleted partition {partition} up to {end}")


def add_partitions(targets: FaultTargets, _rng: random.Random) -> None:
    """Add a partition to `pages`: visits of one URL may then be in two partitions, in any order."""
    try:
        with closing(_admin(targets)) as client:
            count = len(client.describe_topics([targets.topics.pages])[0]["partitions"])
            targets.loose.update(one.truth.name for one in targets.sent if one.truth.kind is not Kind.STORY)
            client.create_partitions({targets.topics.pages: count + 1})
        targets.log(f"{targets.topics.pages} has {count + 1} partitions")
    except KafkaError as error:
        targets.log(f"no partition added: {error!r}")


PAGE_FAULTS: dict[Fault, int] = {
    hostile_records: 3,
    odd_clocks: 1,
    slow_partition: 2,
    expire_pages: 3,
    add_partitions: 1,
}
"""Faults of what is in `pages`, with their weights."""


def _poison(key: str, value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> Sent:
    return Sent(key.encode(), value, headers, RecordTruth(Kind.POISON, key[:60], ""))


def _story(rng: random.Random, name: str, characters: int = 800) -> Sent:
    url = f"https://odd.example/{name}"
    row = {"id": name, "url": url, "title": name, "text": Writer(random.Random(rng.random())).text(characters)}
    return Sent(url.encode(), json.dumps(row).encode(), (), RecordTruth(Kind.STORY, name, name))


def publish(
    targets: FaultTargets, records: list[Sent], *, partition: int | None = None, timestamp_ms: int | None = None
) -> None:
    """Publish records beside the stream."""
    try:
        with closing(_producer(targets)) as producer:
            for sent in records:
                place = {"partition": partition, "timestamp_ms": timestamp_ms}
                targets.extra.append(sent)  # a failure may still mean that it was written
                producer.send(targets.topics.pages, sent.value, sent.key, list(sent.headers), **place).get(timeout=120)
    except KafkaError as error:
        targets.log(f"not published: {error!r}")


def _admin(targets: FaultTargets) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=targets.bootstrap.split(","), bootstrap_timeout_ms=20_000)


def _producer(targets: FaultTargets) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=targets.bootstrap.split(","),
        compression_type="gzip",
        max_request_size=100 << 20,
        max_block_ms=60_000,
        delivery_timeout_ms=120_000,
        bootstrap_timeout_ms=30_000,
        metrics_enabled=False,
    )
