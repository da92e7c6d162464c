"""The sharded in-memory block index: finds candidates by Hamming distance, by shared keys, and by equal hashes.

The tables are native (`dedup_service._native`). `block_index` finds every entry within a radius of a fingerprint,
`cell_index` finds entries that share min-hash keys. Rows by a hash need nothing beside the native `HashRows`.
"""
