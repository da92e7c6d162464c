"""What fuzzing and reviews found, in its smallest form: each entry is a test of its parser.

An entry is the arguments of the `check` in the parser's file, under a line about what they showed.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["FOUND"]

FOUND: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "encoding": {},
    "html": {},
    "jsonlines": {},
    "text": {},
    "url": {},
    "kafka_batches": {},
    "kafka_records": {},
    "properties": {},
    "state_files": {},
    "warc": {},
}
"""Parser → what the input showed → the arguments."""
