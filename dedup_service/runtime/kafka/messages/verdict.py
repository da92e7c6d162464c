"""A verdict as the value of its message: the JSON that `filter` writes, and which record of `pages` it is about.

Invariant: the bytes are a function of the verdict and the source alone, so that every process writes the same ones,
and a test can hold them against an oracle byte for byte.

Figures of the service as the value of a message in `dedup.stats`.

Counts are cumulative and a function of the log up to `sequence`: whoever wrote a record, the same sequence has the
same counts, and the last record says it all. Lag is what its writer saw.
"""

from collections.abc import Mapping

import msgspec

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.verdict_json import verdict_dict

__all__ = ["Stats", "read_stats", "read_verdict", "stats_value", "verdict_value"]

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


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """One record of figures.

    sequence: last record of the log counted. log: its identity. space: of its policy. counts: pages by verdict,
    `rejected`, and other records by kind. entries: kept pages in the index. lag: records of `pages` that wait, by
    partition. instance: who wrote it.
    """

    sequence: int
    log: str | None
    space: str | None
    counts: dict[str, int]
    entries: int
    lag: dict[str, int]
    instance: str


_stats_encoder = msgspec.json.Encoder(order="sorted")
_stats_decoder = msgspec.json.Decoder(Stats)


def stats_value(replica: Replica, instance: str, lag: Mapping[str, int]) -> bytes:
    """Return the value of the message that `instance` writes about `replica` and the `lag` it sees."""
    return _stats_encoder.encode(
        Stats(
            sequence=replica.sequence,
            log=replica.log,
            space=None if replica.policy is None else replica.policy.space_id,
            counts=dict(replica.counts),
            entries=len(replica),
            lag=dict(lag),
            instance=instance,
        )
    )


def read_stats(value: bytes) -> Stats:
    """Return what `stats_value` wrote; ValueError where the bytes are none of it. Unknown fields are ignored."""
    return _stats_decoder.decode(value)
