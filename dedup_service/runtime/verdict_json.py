"""A verdict as one line of JSON, as written to files, pipes and reports, and as a row of an Arrow table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dedup_service.core.verdict import Verdict

if TYPE_CHECKING:
    import pyarrow as pa

OF_THE_PAGE = ("id", "url")
"""Keys of a verdict that the page has, too: a verdict beside its page is without them."""

OF_THE_VERDICT = (
    *("verdict", "duplicate_of", "duplicate_of_url", "duplicate_of_base", "distance", "score", "reason", "sequence"),
    "space",
)
"""Its other keys, in their order."""

_encoder = msgspec.json.Encoder(enc_hook=str)


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values, in the order of the keys of its line.

    `duplicate_of_base` is left out where there is none.
    """
    base = {} if verdict.duplicate_of_base is None else {"duplicate_of_base": verdict.duplicate_of_base}
    return {
        "id": verdict.id,
        "url": verdict.url,
        "verdict": verdict.kind.value,
        "duplicate_of": verdict.duplicate_of,
        "duplicate_of_url": verdict.duplicate_of_url,
        **base,
        "distance": {"words": verdict.distance.words, "body": verdict.distance.body},
        "score": verdict.score,
        "reason": verdict.reason,
        "sequence": verdict.sequence,
        "space": verdict.space,
    }


def verdict_line(verdict: Verdict) -> bytes:
    """Return `verdict` as a line of UTF-8 with a newline."""
    return _encoder.encode(verdict_dict(verdict)) + b"\n"


def plain_json(value: object) -> bytes:
    """Return any value as JSON; what is no value of JSON, as text."""
    return _encoder.encode(value)


def beside(own: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
    """Return a record's own values and its verdict beside them, without those of `OF_THE_PAGE`.

    An own value under a name of the verdict's gets `input_` before its name.
    """
    said = {name: value for name, value in verdict_dict(verdict).items() if name not in OF_THE_PAGE}
    return {renamed(name): value for name, value in own.items()} | said


def renamed(name: str) -> str:
    """Return the name of an input's own value beside a verdict.

    >>> renamed("title"), renamed("score")
    ('title', 'input_score')
    """
    return f"input_{name}" if name in OF_THE_VERDICT else name


def verdict_schema(*, is_beside: bool = False) -> "pa.Schema":
    """Return the columns of a table of verdicts: the keys of their lines. is_beside: without those of `OF_THE_PAGE`."""
    import pyarrow as pa

    distance = pa.struct([("words", pa.int16()), ("body", pa.int16())])
    kinds = {"distance": distance, "score": pa.float64(), "sequence": pa.int64()}
    names = (*(() if is_beside else OF_THE_PAGE), *OF_THE_VERDICT)
    return pa.schema([(name, kinds.get(name, pa.string())) for name in names])


def verdict_rows(verdicts: Sequence[Verdict], schema: "pa.Schema") -> "pa.RecordBatch":
    """Return verdicts as rows of `verdict_schema`; what a line leaves out is null."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([verdict_dict(verdict) for verdict in verdicts], schema)
