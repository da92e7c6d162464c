"""Shards over Kafka: readers of the log, of `candidates` and of `outcomes`, and the two processes that use them.

`shard_step` runs a shard; `sharded_log` gives the deciding step the log with the answers of all shards, which makes it
a resolver. Order, storage, replication and fencing are Kafka's.
"""
