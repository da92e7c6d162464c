"""Records from files: JSON lines, Parquet, WARC, folders of HTML, on this machine or at addresses.

A reader yields records in the order of the input and holds one at a time. The expensive part (decoding JSON, extracting
HTML) is in `Record.page`, so that it can happen in another process.
"""

from dedup_service.runtime.readers.open import InputKind, InputOptions, InputSource, open_source
from dedup_service.runtime.readers.record import Extract, Mark, NamedRecord, Record
from dedup_service.runtime.readers.several import open_sources

__all__ = [
    "Extract",
    "InputKind",
    "InputOptions",
    "InputSource",
    "Mark",
    "NamedRecord",
    "Record",
    "open_source",
    "open_sources",
]
