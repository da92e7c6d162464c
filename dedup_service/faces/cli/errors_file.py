"""Bad records, told to people on stderr and kept for machines in `--errors FILE`."""

import base64
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from dedup_service.faces.cli.outputs import OutputFile
from dedup_service.runtime.readers import Record

__all__ = ["BadRecords"]

SHOWN = 100
"""Messages on stderr; further bad records are counted, and written to the file, without one."""

RAW_BYTES = 1000


class BadRecords:
    """Report the bad records of the input `name`, and write them to the file `errors` where one is named."""

    def __init__(self, name: str, errors: str | None) -> None:
        self._name = name
        self._file = None if errors is None else OutputFile(errors)
        self.count = 0

    def report(self, records: Sequence[tuple[Record, str]]) -> None:
        """Report one batch of (record, problem)."""
        for record, problem in records:
            self.count += 1
            if self.count <= SHOWN:
                click.echo(f"twinsieve: {self._name}: {record.place}: {problem}", err=True)
            if self.count == SHOWN:
                click.echo("twinsieve: further bad records are counted without a message", err=True)
        if self._file is not None:
            self._file.write([_line(self._name, record, problem) for record, problem in records])

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.__exit__(None, None, None)


def _line(name: str, record: Record, problem: str) -> bytes:
    values = {"source": name, "line": record.number, "place": record.place, "error": problem}
    return msgspec.json.encode(values | _raw(record.raw)) + b"\n"


def _raw(raw: bytes) -> dict[str, Any]:
    """The beginning of the record: as text where it is UTF-8, else in base 64."""
    raw = raw.rstrip(b"\r\n")
    cut = len(raw) > RAW_BYTES
    try:
        text = raw.decode()[:RAW_BYTES]
    except UnicodeDecodeError:
        return {"raw": None, "raw_base64": base64.b64encode(raw[:RAW_BYTES]).decode(), "raw_cut": cut}
    return {"raw": text, "raw_base64": None, "raw_cut": cut}
