"""Where candidates are found: exact search by Hamming distance over fingerprints, and by shared keys.

The block index: read `layout` (why nothing is missed), then `probe`, `write`, `arena`; `index` is what others call.
The key index: read `key_table`, `key_rows`, `key_probe`; `keys` is what others call.
"""

from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.block_probe import pairs_within
from dedup_service.core.index.block_shard import mix64, owner
from dedup_service.core.index.key_index import KeyIndex
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters

__all__ = [
    "BatchProbeResult",
    "BlockIndex",
    "IndexStatistics",
    "KeyIndex",
    "ProbeResult",
    "WorkCounters",
    "mix64",
    "owner",
    "pairs_within",
]
