"""`--kept FILE.warc.gz --revisits`: kept pages as an archive that says what it left out, with its index.

A record is written in full, as it was read, if its page is kept and the archive does not have its payload; as a revisit
record if the archive has its payload, whatever the verdict; as a metadata record if it is not kept and has another
payload. `runtime.archives` makes the records and the index.

Invariant: each decided record gives one record of the archive, in the order of the input.
"""

import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

import click

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.interfaces.cli.support.outputs import OutputError, OutputFile
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.runtime.archives.cdxj import check_indexer, write_index
from dedup_service.runtime.archives.derived_records import metadata_record, packed_record, revisit_record
from dedup_service.runtime.archives.kept_payloads import KeptPayloads
from dedup_service.runtime.archives.visit import Visit, read_visit
from dedup_service.runtime.readers.open import InputKind

ENDING = ".warc.gz"


class KeptArchive:
    """The archive of a run, and its index, which is written when the run has ended without an error.

    kind: of the inputs. verdicts: of pages that are kept. full, revisits, metadata: how many records of each there are.
    """

    def __init__(self, name: str, kind: InputKind | None, verdicts: Collection[VerdictKind]) -> None:
        index = index_name(name)
        if kind is not InputKind.WARC:
            raise ConfigurationError("--revisits is for WARC inputs: leave it out, or give WARC files alone")
        check_indexer()
        self._path, self._index = Path(name), Path(index)
        self._remove_index()
        self._file = OutputFile(name, packed=False)
        self._payloads, self._verdicts = KeptPayloads(), verdicts
        self.full = self.revisits = self.metadata = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._payloads.close()
        self._file.close()
        if kind is None:
            self._write_index()

    @property
    def counts(self) -> dict[str, int]:
        """Number of records by kind."""
        return {"full": self.full, "revisit": self.revisits, "metadata": self.metadata}

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append one record for each of a batch."""
        try:
            records = [self._record(one.record.raw, one.verdict) for one in decided]
        except sqlite3.Error as error:
            raise OutputError(
                f"{self._path}: what it has cannot be remembered in a temporary file: {error}. "
                "Make room and run the same command again"
            ) from error
        self._file.write(records)

    def _record(self, raw: bytes, verdict: Verdict) -> bytes:
        visit = read_visit(raw) or Visit(uri=verdict.url)
        original = None if visit.payload is None else self._payloads.find(visit.payload)
        number = self.full + self.revisits + self.metadata + 1
        if original is not None:
            self.revisits += 1
            return revisit_record(visit, original, number)
        if verdict.kind not in self._verdicts:
            self.metadata += 1
            return metadata_record(visit, verdict, number)
        self.full += 1
        self._payloads.add(visit)
        return packed_record(raw)

    def _remove_index(self) -> None:
        """Remove the index of an earlier run: it is not that of the file which is written now."""
        try:
            self._index.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"cannot replace the index {str(self._index)!r}: {error.strerror}") from error

    def _write_index(self) -> None:
        try:
            left_out = write_index(self._path, self._index)
        except OSError as error:
            raise OutputError(
                f"{self._index}: {error.strerror}; the archive is complete. Make room and run the same command again"
            ) from error
        if left_out:
            click.echo(f"twinsieve: {self._index}: not in the index, for lack of a date: {left_out}", err=True)


def index_name(name: str) -> str:
    """Return the name of the index beside the archive `name`; ConfigurationError if that is no name of one."""
    if not name.endswith(ENDING) or Path(name).name == ENDING:
        raise ConfigurationError(
            f"--revisits needs --kept with a name that ends in {ENDING}, got {name!r}: replay reads single records, so "
            "each is compressed by itself"
        )
    return f"{name.removesuffix(ENDING)}.cdxj"
