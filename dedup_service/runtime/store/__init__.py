"""The kept pages on disk: rows, evidence and names in segments, tables in files, and the manifest that names them."""
