"""Finds candidates: by Hamming distance, by shared keys, and by equal hashes.

Three small, independent libraries share this folder.

The block index (`block_*`) finds every entry within a radius of a fingerprint. Begin with `block_index`,
which callers use. It has two layouts.

Up to radius 3, `compact`: read `block_halves_write` (why nothing is missed, insertion, removal), `block_lines` (the
tables, their memory and their growth), `block_halves_probe` (search), `block_crowd` (entries of one fingerprint) and
`block_compact`, which also inserts many at once.

Up to radius 7, `seed`: read `block_layout` (why nothing is missed) and `block_seed` (search, insertion, removal,
growth).

The cell index (`cell_*`) finds entries that share min-hash keys. Begin with `cell_index`, which callers use.
Then read `cell_table` (the cells, insertion and removal) and `cell_batch` (search, and whole batches).

`hash_rows` finds rows by a hash; `probe_result` has the values that the block index returns.
"""
