"""A verdict as one line of JSON, as written to files, pipes and reports."""

from typing import Any

import msgspec

from dedup_service.core.verdict import Verdict

_encoder = msgspec.json.Encoder()


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
