"""Records from files: JSON lines, Parquet, WARC, folders of HTML, on this machine or at addresses.

A reader yields records in the order of the input and holds one at a time. The expensive part (decoding JSON, extracting
HTML) is in `Record.page`, so that it can happen in another process.
"""
