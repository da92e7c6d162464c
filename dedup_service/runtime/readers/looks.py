"""What an input looks like by its first bytes, so that a wrong format is named once, not as a bad record a line.

The reader is chosen by the name (`open`). Here a file whose first bytes are surely of another format is refused, and a
file of lines in which nothing begins like an object of JSON.
"""

import re
from collections.abc import Sequence

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.readers.columns import COLUMNS

HEAD_BYTES = 1 << 16
"""That are looked at, unpacked."""

JSON_LINES = "JSON lines"

_SIGNATURES = {
    b"WARC/": ("a WARC file", "read it from a file whose name ends with .warc, .warc.gz, .wet or .wet.gz"),
    b"PAR1": ("Parquet", "read it from a file whose name ends with .parquet"),
    b"ARROW1": ("Arrow IPC", "write it as Parquet"),
    b"Obj\x01": ("Avro", "write it as Parquet"),
    b"ORC": ("ORC", "write it as Parquet"),
    b"SQLite format 3\x00": ("an SQLite database", "export what is in it as CSV"),
    b"PK\x03\x04": ("a ZIP archive or a spreadsheet", "unpack it, or save the spreadsheet as CSV"),
    b"%PDF-": ("PDF", "extract its text first"),
    b"\xfd7zXZ\x00": ("xz", "unpack it first: xz -dc"),
    b"BZh": ("bzip2", "unpack it first: bzip2 -dc"),
    b"\xff\xfe": ("text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
}
_SURE_BYTES, _SURE_LINES = 1 << 12, 20
"""Without an object of JSON: shorter files are a few bad records."""

_FORMS = {
    re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE): (
        "HTML",
        "read it from a file whose name ends with .html",
    ),
    re.compile(rb"<"): ("XML", "write one object of JSON a line"),
    re.compile(rb"\["): ("an array of JSON", "write one object a line, as jq -c '.[]' does"),
    re.compile(rb"\{\s*\n"): ("JSON over several lines", "write one object a line, as jq -c . does"),
    re.compile(rb"\{"): (JSON_LINES, "read it from a file whose name ends with .jsonl"),
}
"""Of texts; the first one that fits counts."""

_MARK = b"\xef\xbb\xbf"
_OBJECT = re.compile(rb"^[ \t]*\{.*[^\s{]", re.MULTILINE)


def look(head: bytes) -> tuple[str, str] | None:
    r"""Return which format these bytes begin, and what to do with a file of it; None if that is not sure.

    >>> look(b"url,text\n")
    ('CSV', 'read it from a file, or a pipe of mkfifo, that is called so: twinsieve filter pages.csv')
    """
    signature = next((found for magic, found in _SIGNATURES.items() if head.startswith(magic)), None)
    text = head.removeprefix(_MARK).lstrip()
    return (
        signature or next((found for form, found in _FORMS.items() if form.match(text)), None) or _look_of_table(text)
    )


def _look_of_table(text: bytes) -> tuple[str, str] | None:
    line = text.partition(b"\n")[0].rstrip()
    for separator, kind, ending in ((b"\t", "TSV", ".tsv"), (b",", "CSV", ".csv"), (b";", "CSV", ".csv")):
        cells = {cell.strip(b' "').lower().decode("utf-8", "replace") for cell in line.split(separator)}
        if len(cells) > 1 and cells & set(COLUMNS):
            return kind, f"read it from a file, or a pipe of mkfifo, that is called so: twinsieve filter pages{ending}"
    return None


def refuse_other(head: bytes, name: str, kinds: Sequence[str]) -> None:
    """Raise ConfigurationError if these first bytes are surely of another format.

    kinds: those that may be; any, if there are none. Lines of JSON have an object among their first ones; bad records
    may come before it.
    """
    if not kinds:
        return
    found = look(head)
    of_lines = JSON_LINES in kinds and bool(head.strip())
    if of_lines and _OBJECT.search(head.removeprefix(_MARK)):
        return
    if found is not None and found[0] not in kinds:
        raise ConfigurationError(f"{name} looks like {found[0]}, not like {kinds[0]}: {found[1]}")
    if of_lines and found is None and (len(head) >= _SURE_BYTES or head.count(b"\n") >= _SURE_LINES):
        raise ConfigurationError(
            f"{name} has no object of JSON in its first lines, so it is not {kinds[0]}: write one a line, or "
            "name it by what it is (.csv, .tsv, .parquet, .warc, .html)"
        )
