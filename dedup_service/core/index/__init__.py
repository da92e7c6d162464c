"""The block index: exact search by Hamming distance over 64-bit fingerprints.

Read `layout` (why nothing is missed), then `probe`, `write`, `arena`; `index` is what others call.
"""

from dedup_service.core.index.candidates import CandidateBatch, Candidates, IndexStatistics, WorkCounters
from dedup_service.core.index.index import BlockIndex
from dedup_service.core.index.pairs import pairs_within
from dedup_service.core.index.sharding import mix64, owner

__all__ = [
    "BlockIndex",
    "CandidateBatch",
    "Candidates",
    "IndexStatistics",
    "WorkCounters",
    "mix64",
    "owner",
    "pairs_within",
]
