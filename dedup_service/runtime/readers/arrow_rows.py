"""Rows of Arrow tables as lines of JSON with our keys, which are read as JSON lines are.

Numbers and times become text where a text is wanted; HTML in bytes is decoded as browsers do; wrong UTF-8 is replaced.
"""

from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.core.text.encoding import decode_html
from dedup_service.runtime.readers.columns import COLUMNS_OPTION, Columns

if TYPE_CHECKING:
    import pyarrow as pa


def require_pyarrow(name: str) -> None:
    """Raise ConfigurationError if the library is missing. name: what is read, written or called."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(f"{name} needs pyarrow, which is missing: pip install 'twinsieve[parquet]'") from error


def wanted_columns(schema: "pa.Schema", columns: Columns, name: str, how: str = COLUMNS_OPTION) -> dict[str, str]:
    """Return the columns that are read, by our names; those of objects by their paths. See `Columns.among`."""
    return columns.among(schema.names, name, how, lambda path: _has(schema, path))


def _has(schema: "pa.Schema", name: str) -> bool:
    """Return whether a schema has a column, or a field of objects at this path."""
    if name in schema.names:
        return True
    import pyarrow as pa

    first, point, rest = name.partition(".")
    if not point or first not in schema.names:
        return False
    kind = schema.field(first).type
    return pa.types.is_struct(kind) and _has(pa.schema(list(kind)), rest)


def column_at(rows: "pa.RecordBatch", name: str) -> "pa.Array":
    """Return the column of this name, or at this path through objects; null where an object is."""
    if name in rows.schema.names:
        return rows.column(name)
    import pyarrow as pa

    first, _, rest = name.partition(".")
    objects = rows.column(first)
    fields = [field.name for field in objects.type]
    return column_at(pa.RecordBatch.from_arrays(objects.flatten(), fields), rest)


def column_values(column: "pa.Array") -> list[Any]:
    """Return values; those that Python cannot have one by one, so that they cost no other one."""
    try:
        return list(column.to_pylist())
    except Exception:  # UnicodeDecodeError, ValueError, OverflowError, errors of time zones
        return [_value(one) for one in column]


def _value(scalar: Any) -> Any:
    """Return a value. Bytes of a text that are no UTF-8 are replaced; times that Python lacks are text."""
    import pyarrow as pa

    with suppress(Exception):
        return scalar.as_py()
    if isinstance(scalar, pa.DictionaryScalar | pa.ExtensionScalar):
        return _value(scalar.value)
    if isinstance(scalar, pa.ListScalar):
        return [_value(one) for one in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {field.name: _value(scalar[at]) for at, field in enumerate(scalar.type)}
    if isinstance(scalar, pa.BinaryScalar):
        return scalar.as_buffer().to_pybytes().decode("utf-8", "replace")
    return _time(scalar)


def _time(scalar: Any) -> str:
    import pyarrow as pa

    try:
        return str(scalar.cast(pa.string()).as_py())
    except pa.ArrowException:  # of an unknown time zone
        return str(scalar.value)


def json_of_row(values: dict[str, Any]) -> bytes:
    """Return the values of a row as a line of JSON, without those that are missing."""
    return msgspec.json.encode(plain_row(values))


def plain_row(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row as those of a line of JSON, without those that are missing."""
    return {
        name: _number(value) if name == "text_percent" else _plain(name, value)
        for name, value in values.items()
        if value is not None
    }


def _number(value: Any) -> Any:
    """Return a value as a number, if it is one of whatever kind; otherwise as `_plain`."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else _plain("", value)


def _plain(name: str, value: Any) -> Any:
    """Return a value as a text or a list of texts, if it can be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return decode_html(value[: MAX_PAGE_SIZE + 1]).text if name == "html" else value.decode("utf-8", "replace")
    if isinstance(value, list):
        return [_plain("", one) for one in value if one is not None]
    if isinstance(value, date):  # and datetime
        return value.isoformat()
    if isinstance(value, dict):  # a wrong type
        return {name: _plain("", one) for name, one in value.items()}
    return str(value)
