"""Verdicts and stats as message values: JSON.

A verdict is the JSON that `filter` writes, with the place of its record in `pages`. Invariant: the bytes are
a function of the verdict and the source alone, so every process writes the same ones, and a test can compare
them with an oracle byte for byte.

Stats are the counts of the service in `dedup.stats`. They are cumulative and a function of the log up to
`sequence`: the same sequence has the same counts whichever process wrote the record, and the last record is
complete. Lag is what its writer saw.

Names of fields and keys are those of the JSON objects; renaming one changes the wire format.
"""

from collections.abc import Mapping

import msgspec

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.verdict_json import verdict_dict


class VerdictLine(msgspec.Struct):
    """Fields of a verdict's message."""

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
    duplicate_of_base: str | None = None


_verdict_encoder = msgspec.json.Encoder()
_verdict_decoder = msgspec.json.Decoder(VerdictLine)
_stats_encoder = msgspec.json.Encoder(order="sorted")


def verdict_value(verdict: Verdict, source: Source) -> bytes:
    """Return the message value of the `verdict` on the record at `source`."""
    fields = verdict_dict(verdict)
    fields |= {"topic": source.topic, "partition": source.partition, "offset": source.offset}
    return _verdict_encoder.encode(fields)


def read_verdict(value: bytes) -> tuple[Verdict, Source]:
    """Return what `verdict_value` wrote; ValueError for other bytes. Unknown fields are ignored."""
    line = _verdict_decoder.decode(value)
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
        duplicate_of_base=line.duplicate_of_base,
    )
    return verdict, Source(line.topic, line.partition, line.offset)


def stats_value(replica: Replica, instance: str, lag: Mapping[str, int]) -> bytes:
    """Return the message value that `instance` writes about its `replica` and the `lag` that it sees.

    Counts are of pages by verdict, `rejected`, and other records by kind. lag: records of `pages` not yet done, by
    partition ("pages-0").
    """
    return _stats_encoder.encode(
        {
            "sequence": replica.sequence,
            "log": replica.log,
            "space": None if replica.policy is None else replica.policy.space_id,
            "counts": {**replica.counts, **{f"expired_entries_{why}": n for why, n in replica.expired.items() if n}},
            "entries": len(replica),
            "lag": dict(lag),
            "instance": instance,
        }
    )
