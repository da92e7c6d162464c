"""Where candidates are found: exact search by Hamming distance over fingerprints, and by shared keys.

The block index: read `layout` (why nothing is missed), then `probe`, `write`, `arena`; `index` is what others call.
The key index: read `key_table`, `key_rows`, `key_probe`; `keys` is what others call.
"""

from dedup_service.core.index.candidates import CandidateBatch, Candidates, IndexStatistics, WorkCounters
from dedup_service.core.index.index import BlockIndex
from dedup_service.core.index.keys import KeyIndex
from dedup_service.core.index.pairs import pairs_within
from dedup_service.core.index.sharding import mix64, owner

__all__ = [
    "BlockIndex",
    "CandidateBatch",
    "Candidates",
    "IndexStatistics",
    "KeyIndex",
    "WorkCounters",
    "mix64",
    "owner",
    "pairs_within",
]
