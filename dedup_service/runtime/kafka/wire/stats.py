"""Figures of the service as the value of a message in `dedup.stats`.

Counts are cumulative and a function of the log up to `sequence`: whoever wrote a record, the same sequence has the
same counts, and the last record says it all. Lag is what its writer saw.
"""

from collections.abc import Mapping

import msgspec

from dedup_service.core.replica import Replica

__all__ = ["Stats", "read_stats", "stats_value"]


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


_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(Stats)


def stats_value(replica: Replica, instance: str, lag: Mapping[str, int]) -> bytes:
    """Return the value of the message that `instance` writes about `replica` and the `lag` it sees."""
    return _encoder.encode(
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
    return _decoder.decode(value)
