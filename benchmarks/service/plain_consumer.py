"""The peer: a plain consumer with kafka-python, jieba, and PyPI simhash with its index.

    python -m benchmarks.service.plain_consumer BOOTSTRAP INPUT OUTPUT GROUP

At least once: it commits after each poll. It keeps no state, and it answers pages twice that arrive twice.
It follows the documentation of its libraries, with the improvements that cost nothing: batched sends and one
flush for each poll.
"""

import json
import logging
import sys

import jieba
from kafka import KafkaConsumer, KafkaProducer
from simhash import Simhash, SimhashIndex  # type: ignore[import-untyped]


def main(bootstrap: str, source: str, target: str, group: str) -> None:
    """Answer pages until the process is killed."""
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    logging.getLogger("simhash").setLevel(logging.ERROR)  # it warns of every large bucket
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), linger_ms=5)
    index = SimhashIndex([], k=3)
    while True:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                page = json.loads(record.value)
                value = Simhash(jieba.lcut(f"{page['title']}\n{page['text']}"))
                near = index.get_near_dups(value)
                if not near:
                    index.add(page["id"], value)
                answer = {"id": page["id"], "verdict": "duplicate" if near else "unique", "of": near[:1]}
                producer.send(target, json.dumps(answer).encode(), key=record.key)
        producer.flush()
        consumer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
