"""What fuzzing and reviews found: each input showed a fault of its parser once."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import (
    test_encoding,
    test_html,
    test_jsonlines,
    test_kafka_batches,
    test_kafka_records,
    test_properties,
    test_state_files,
    test_text,
    test_url,
    test_warc,
)
from tests.fuzz.corpus.found import FOUND

RECORDS = {
    "page": test_kafka_records.check_page,
    "log": test_kafka_records.check_log,
    "verdict": test_kafka_records.check_verdict,
    "offset": test_kafka_records.check_offset,
}
CHECKS: Mapping[str, Callable[..., None]] = {
    "encoding": test_encoding.check,
    "html": test_html.check,
    "http_body": test_warc.check_body,
    "jsonlines": test_jsonlines.check,
    "kafka_batches": test_kafka_batches.check,
    "kafka_records": lambda kind, *arguments: RECORDS[kind](*arguments),
    "properties": test_properties.check,
    "state_files": test_state_files.check_state,
    "text": test_text.check,
    "url": test_url.check,
    "warc": test_warc.check,
}
FILES = {"properties", "warc"}
"""Parsers whose check writes a file."""


@pytest.mark.parametrize(
    ("parser", "arguments"),
    [
        pytest.param(parser, given, id=f"{parser}: {what}")
        for parser, all_ in FOUND.items()
        for what, given in all_.items()
    ],
)
def test_what_was_found_once(parser: str, arguments: tuple[Any, ...], tmp_path: Path) -> None:
    """The parser holds what it promises."""
    CHECKS[parser](*arguments, *([tmp_path / "input"] if parser in FILES else []))
