"""A verdict as one line of JSON: the form in which files, pipes and reports get it."""

from typing import Any

import msgspec

from dedup_service.core.verdict import Verdict

__all__ = ["verdict_dict", "verdict_line"]

_encoder = msgspec.json.Encoder()


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """Return the keys of a verdict line, in their order."""
    return {
        "id": verdict.id,
        "url": verdict.url,
        "verdict": verdict.kind.value,
        "duplicate_of": verdict.duplicate_of,
        "duplicate_of_url": verdict.duplicate_of_url,
        "distance": {"words": verdict.distance.words, "body": verdict.distance.body},
        "score": verdict.score,
        "reason": verdict.reason,
        "sequence": verdict.sequence,
        "space": verdict.space,
    }


def verdict_line(verdict: Verdict) -> bytes:
    """Return `verdict` as a line of UTF-8, newline included."""
    return _encoder.encode(verdict_dict(verdict)) + b"\n"
