"""Where `groups` writes: lines of JSON, or a Parquet file with one row a group.

A Parquet file is written beside its place and moved there when it is whole: one that is cut off cannot be read. What
waits to be written is bounded by its bytes, whatever the number of groups.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.outputs import OutputError, OutputFile

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_BYTES = 8 << 20
"""Size of a row group as lines of JSON, some 20,000 members; as objects it takes some ten times that in memory."""

_BATCH_BYTES = 1 << 20
_encode = msgspec.json.Encoder().encode


class GroupOutput(Protocol):
    """Takes groups as `runtime.groups.group_values` has them."""

    def write(self, group: dict[str, Any]) -> None:
        """Write a group; raises OutputError if that fails."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


def open_groups(name: str) -> GroupOutput:
    """Return the output `name`: Parquet if it ends with .parquet, else lines of JSON; - is standard output.

    Raises ConfigurationError for a file that cannot be written, and for Parquet without pyarrow.
    """
    return _ParquetFile(Path(name)) if name.lower().endswith(".parquet") else _JsonLines(name)


class _JsonLines:
    """Lines of JSON, some thousands at a time."""

    def __init__(self, name: str) -> None:
        self._file = OutputFile(name)
        self._lines = bytearray()

    def write(self, group: dict[str, Any]) -> None:
        """Write a line."""
        self._lines += _encode(group) + b"\n"
        if len(self._lines) >= _BATCH_BYTES:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._file.close()

    def _flush(self) -> None:
        lines, self._lines = bytes(self._lines), bytearray()
        self._file.write([lines])


class _ParquetFile:
    """A Parquet file that is there when it is whole."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet as pq
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "Parquet needs pyarrow: pip install 'twinsieve[parquet]'; or write JSON lines to another file name"
            ) from error
        if path.exists() and not path.is_file():
            raise ConfigurationError(f"cannot write {str(path)!r}: it is no regular file")
        self._path = path
        self._part = path.with_name(f"{path.name}.part-{os.getpid()}")
        self._schema = _schema()
        try:
            self._writer = pq.ParquetWriter(self._part, self._schema, compression="zstd")
        except OSError as error:
            raise ConfigurationError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def write(self, group: dict[str, Any]) -> None:
        """Add a row; a full row group is written."""
        self._rows.append(group)
        self._bytes += len(_encode(group))
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with suppress(OSError) if kind is not None else _reported(self._path):
                if kind is None and self._rows:
                    self._flush()
                self._writer.close()
                if kind is None:
                    self._part.replace(self._path)
        finally:
            self._part.unlink(missing_ok=True)

    def _flush(self) -> None:
        import pyarrow as pa

        rows, self._rows, self._bytes = self._rows, [], 0
        with _reported(self._path):
            self._writer.write_table(pa.Table.from_pylist(_with_times(rows), self._schema))


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Raise what the disk refuses as an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path}: {error.strerror or error}; nothing is there. Make room and run the same command again"
        ) from error


def _schema() -> "pa.Schema":
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    names = [("id", text), ("url", text), ("sequence", number)]
    member = pa.struct(
        [
            *names,
            ("title", text),
            ("date", pa.date32()),
            ("verdict", text),
            ("distance", pa.struct([("words", pa.int8()), ("body", pa.int8())])),
            ("score", pa.float64()),
            ("reason", text),
            ("letters", number),
            ("text_percent", pa.int8()),
            ("host_sentences", pa.float64()),
            ("at", pa.timestamp("ms", "UTC")),
            ("source", pa.struct([("topic", text), ("partition", pa.int32()), ("offset", number)])),
            ("removed", text),
        ]
    )
    return pa.schema(
        [
            ("group", number),
            ("size", number),
            ("records", number),
            ("policy", text),
            ("canonical", pa.struct(names)),
            ("follows", number),
            ("members", pa.list_(member)),
            ("omitted", number),
        ]
    )


def _with_times(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with times and dates as values instead of texts."""

    def timed(member: dict[str, Any]) -> dict[str, Any]:
        at, day = member["at"], member["date"]
        return member | {
            "at": None if at is None else datetime.fromisoformat(at),
            "date": None if day is None else date.fromisoformat(day),
        }

    return [row | {"members": [timed(member) for member in row["members"]]} for row in rows]
