"""The names of the topics, and how each has to be kept: partitions, replication, settings.

One prefix makes a separate set. A service that writes verdicts alone (`OutputMode`) does without the topics that pages
are passed on to.

The log of fingerprints is the only memory of the service, so nothing may ever be removed from it, and it has
one partition because its offsets are the order. All other topics pass pages on and delete them after a
while.

Sizes: `max.message.bytes` bounds a batch as its producer compressed it. For `pages` it is the operator's
choice. Everything else is written by the service, which accepts no record whose outputs would be larger than
fixed bounds before compression (`core.size_limits`). The other topics must take that much
(`least_message_bytes`), whatever the limit of `pages` is: a small batch can unpack to a large record.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.size_limits import EVENT_MESSAGE_BYTES, PAGE_MESSAGE_BYTES
from dedup_service.runtime.kafka.client.admin import TopicPlan

DAY_MS = 86_400_000
FOREVER = -1

_ALLOWED = re.compile(r"[A-Za-z0-9._-]{0,200}")  # Kafka's own rule for names of at most 249 characters
_LARGEST_PAGE_BYTES = 24 << 20  # more than one record that is accepted, and less than a fetch of the service
_STATS_BYTES = 64 << 10  # counts, names and headers
_STATS_LAG_BYTES = 32  # beside the topic's name: partition number, lag, punctuation


class OutputMode(StrEnum):
    """What the service writes for a page.

    Attributes:
        PAGES: Its verdict, and the page to `pages.unique` or `pages.duplicate`.
        VERDICTS: Its verdict alone, which says where in `pages` the page is.
    """

    PAGES = "pages"
    VERDICTS = "verdicts"


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of one set of topics; raises ConfigurationError for a prefix that Kafka would refuse.

    >>> Topics("news.").unique
    'news.pages.unique'
    """

    prefix: str = ""

    def __post_init__(self) -> None:
        if not _ALLOWED.fullmatch(self.prefix):
            raise ConfigurationError(
                f"prefix {self.prefix!r} cannot begin a topic name: use letters, digits, '.', '_' and '-', 200 at most"
            )

    @property
    def pages(self) -> str:
        """Input: what crawlers publish."""
        return f"{self.prefix}pages"

    @property
    def fingerprints(self) -> str:
        """The log: one partition, whose offsets are the total order."""
        return f"{self.prefix}fingerprints"

    @property
    def unique(self) -> str:
        """Pages to store: unique, updated, undecided."""
        return f"{self.prefix}pages.unique"

    @property
    def duplicate(self) -> str:
        """Pages that are known already: duplicate, unchanged."""
        return f"{self.prefix}pages.duplicate"

    @property
    def verdicts(self) -> str:
        """One verdict for each input record."""
        return f"{self.prefix}verdicts"

    @property
    def dlq(self) -> str:
        """Records that describe no page, with their original bytes."""
        return f"{self.prefix}pages.dlq"

    @property
    def stats(self) -> str:
        """Counts, once a second at most."""
        return f"{self.prefix}dedup.stats"

    @property
    def offsets(self) -> str:
        """How far each step is in each partition of `pages`; written with what it did."""
        return f"{self.prefix}dedup.offsets"

    @property
    def canonical(self) -> str:
        """Which page stands for a group, by group: one partition, in the order of the log."""
        return f"{self.prefix}canonical"

    @property
    def all(self) -> tuple[str, ...]:
        """All names, in the order in which a page passes them."""
        outputs = self.unique, self.duplicate, self.verdicts, self.dlq, self.stats
        return self.pages, self.fingerprints, *outputs, self.canonical, self.offsets

    @property
    def compacted(self) -> frozenset[str]:
        """The names of those of which the latest message of each key counts. Each is read as one sequence."""
        return frozenset({self.canonical, self.offsets})

    @property
    def candidates(self) -> str:
        """Answers of shards; partition I - 1 has those of shard I."""
        return f"{self.prefix}candidates"

    @property
    def outcomes(self) -> str:
        """What a resolver tells the shards: one partition, in the order of the log."""
        return f"{self.prefix}outcomes"

    @property
    def of_shards(self) -> tuple[str, str]:
        """The names that only a service with shards needs."""
        return self.candidates, self.outcomes

    def needed_for(self, outputs: OutputMode) -> tuple[str, ...]:
        """Names of the topics without which a service does not start, in the order of `all`.

        `canonical` is written by a step alone that reads nothing but the log: no other step needs it.
        """
        unused = {self.canonical} if outputs is OutputMode.PAGES else {self.canonical, self.unique, self.duplicate}
        return tuple(name for name in self.all if name not in unused)

    def made_for(self, outputs: OutputMode) -> tuple[str, ...]:
        """Names of the topics that are made for a service, in the order of `all`."""
        return tuple(name for name in self.all if name == self.canonical or name in self.needed_for(outputs))


DLQ_RETENTION_MS = 30 * DAY_MS
"""People read dead letters, and people go on holiday."""

STATS_RETENTION_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class Layout:
    """What an operator chooses; the defaults are for a crawl of some tens of millions of pages.

    `partitions`: of `pages` and its outputs; a service process needs at least one to have work.
    `replication`: copies of each partition; None: three where there are three brokers, else one per broker.
    `retention_ms`: of `pages` and its outputs, and of `candidates`, since a resolver that was away for longer cannot go
    on; -1 keeps records indefinitely. `max_page_bytes`: of a batch in `pages`, compressed.
    `outputs`: of the services that the topics are for. `slots`: with topics for shards, so many at most; None: without.
    """

    partitions: int = 8
    replication: int | None = None
    retention_ms: int = 7 * DAY_MS  # Kafka's own default: a week to repair a service that has stopped
    max_page_bytes: int = 8 << 20
    outputs: OutputMode = OutputMode.PAGES
    slots: int | None = None

    def __post_init__(self) -> None:
        if self.partitions < 1 or (self.replication is not None and self.replication < 1):
            raise ConfigurationError(
                f"{self.partitions} partitions with replication {self.replication}: give at least 1 for both"
            )
        if not 1024 <= self.max_page_bytes <= _LARGEST_PAGE_BYTES:
            raise ConfigurationError(
                f"pages of at most {self.max_page_bytes:,} bytes: choose 1,024 to {_LARGEST_PAGE_BYTES:,}, or store "
                "larger pages elsewhere and publish their text"
            )


def plan_for(topics: Topics, layout: Layout, brokers: int = 1) -> tuple[TopicPlan, ...]:
    """Return what `create` makes on so many brokers, in the order of `topics.all`."""
    needed = topics.made_for(layout.outputs)
    copies = layout.replication or min(3, brokers)
    many, kept_ms = layout.partitions, layout.retention_ms
    size = PAGE_MESSAGE_BYTES  # more than log and verdicts need: a limit takes no room
    rows = [
        (topics.pages, many, kept_ms, layout.max_page_bytes),
        (topics.fingerprints, 1, FOREVER, size),
        (topics.unique, many, kept_ms, size),
        (topics.duplicate, many, kept_ms, size),
        (topics.verdicts, many, kept_ms, size),
        (topics.dlq, 1, DLQ_RETENTION_MS, size),
        (topics.stats, 1, STATS_RETENTION_MS, least_message_bytes(topics, many)[topics.stats]),
    ]
    if layout.slots is not None:
        needed = (*needed, *topics.of_shards)
        rows += [
            (topics.candidates, layout.slots, kept_ms, EVENT_MESSAGE_BYTES),
            (topics.outcomes, 1, FOREVER, EVENT_MESSAGE_BYTES),
        ]
    plans = [
        TopicPlan(name, partitions, copies, _settings(retention_ms, size, copies))
        for name, partitions, retention_ms, size in rows
        if name in needed
    ]
    compacted = [
        TopicPlan(name, 1, copies, {**_settings(FOREVER, size, copies), **_COMPACTED, **segments})
        for name, size, segments in (
            (
                topics.canonical,
                EVENT_MESSAGE_BYTES,
                {"segment.bytes": str(64 << 20)},
            ),  # few files for millions of groups
            (topics.offsets, 1 << 19, {}),
        )
    ]
    return *plans, *compacted


_COMPACTED = {
    "cleanup.policy": "compact",  # the latest offset of each step and partition is what counts
    # Small segments, soon compacted: a start reads all that is left, some megabytes at most.
    "segment.bytes": str(1 << 20),
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}


def least_message_bytes(topics: Topics, partitions: int) -> dict[str, int]:
    """Return the `max.message.bytes` that each topic the service writes to needs at least.

    partitions: of `pages`; a record of stats has the lag of each.
    """
    pages = (topics.unique, topics.duplicate, topics.dlq)
    stats = _STATS_BYTES + partitions * (len(topics.pages) + _STATS_LAG_BYTES)
    return {
        **dict.fromkeys(pages, PAGE_MESSAGE_BYTES),
        **dict.fromkeys((topics.fingerprints, topics.verdicts, topics.canonical), EVENT_MESSAGE_BYTES),
        topics.stats: max(EVENT_MESSAGE_BYTES, stats),
    }


def _settings(retention_ms: int, max_bytes: int, replication: int) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "retention.bytes": "-1",  # by time only: a burst must not delete what was not read yet
        "max.message.bytes": str(max_bytes),
        "compression.type": "producer",
        # One copy may be away without stopping writers; with fewer than three copies that would cost availability.
        "min.insync.replicas": "2" if replication >= 3 else "1",
        "unclean.leader.election.enable": "false",  # keeps what was acknowledged
    }
