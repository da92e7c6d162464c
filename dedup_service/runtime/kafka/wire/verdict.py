"""A verdict as the value of its message: the JSON that `filter` writes, and which record of `pages` it is about.

Invariant: the bytes are a function of the verdict and the source alone, so that every process writes the same ones,
and a test can hold them against an oracle byte for byte.
"""

import msgspec

from dedup_service.core.changelog import Source
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.verdict_lines import verdict_dict

__all__ = ["read_verdict", "verdict_value"]

_encoder = msgspec.json.Encoder()


class _VerdictLine(msgspec.Struct):
    """The keys of a verdict's message."""

    id: str
    url: str
    verdict: VerdictKind
    sequence: int
    space: str
    topic: str
    partition: int
    offset: int
    duplicate_of: str | None = None
    duplicate_of_url: str | None = None
    distance: Distance = Distance()
    score: float | None = None
    reason: str | None = None


_decoder = msgspec.json.Decoder(_VerdictLine)


def verdict_value(verdict: Verdict, source: Source) -> bytes:
    """Return the value of the message that tells `verdict` on the record at `source`."""
    fields = verdict_dict(verdict)
    fields |= {"topic": source.topic, "partition": source.partition, "offset": source.offset}
    return _encoder.encode(fields)


def read_verdict(value: bytes) -> tuple[Verdict, Source]:
    """Return what `verdict_value` wrote; ValueError where the bytes are no verdict. Unknown fields are ignored."""
    line = _decoder.decode(value)
    verdict = Verdict(
        sequence=line.sequence,
        id=line.id,
        url=line.url,
        kind=line.verdict,
        space=line.space,
        duplicate_of=line.duplicate_of,
        duplicate_of_url=line.duplicate_of_url,
        distance=line.distance,
        score=line.score,
        reason=line.reason,
    )
    return verdict, Source(line.topic, line.partition, line.offset)
