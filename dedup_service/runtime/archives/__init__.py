"""Archives of kept pages that say what was left out: WARC files with revisit and metadata records, and their index.

- `visit` reads what an archive says of one capture: its headers and what identifies its payload.
- `kept_payloads` remembers the payloads of an archive, in bounded memory.
- `derived_records` makes the records that stand for captures that are left out.
- `cdxj` writes the index beside an archive.

Invariant: the same captures with the same verdicts give the same bytes.
"""
