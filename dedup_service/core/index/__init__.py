"""Finds candidates: exact search by Hamming distance over fingerprints, and search by shared keys.

Two small, independent libraries share this folder.

The block index (`block_*`) finds every entry within a radius of a fingerprint. Begin with `block_index`,
which callers use. Then read `block_layout` (why nothing is missed), `block_probe` (search), `block_write`
(insertion, removal), `block_arena` (growth) and `block_shard` (one part of an index).

The key index (`key_*`) finds every entry that shares a key. Begin with `key_index`, which callers use. Then
read `key_table` (where the bucket of a key is), `key_rows` (the entries in a bucket) and `key_probe`
(search).

`probe_result` has the values that both return.
"""

from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.block_probe import pairs_within
from dedup_service.core.index.block_shard import owner
from dedup_service.core.index.key_index import KeyIndex
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters

__all__ = [
    "BatchProbeResult",
    "BlockIndex",
    "IndexStatistics",
    "KeyIndex",
    "ProbeResult",
    "WorkCounters",
    "owner",
    "pairs_within",
]
