"""What a page costs in each part of an index over many machines: every constant with its unit and its source.

    costs = UnitCosts()
    costs.memory_page.value, costs.memory_page.unit, costs.memory_page.source
    replace(costs, shard_rate=costs.shard_rate.measured(25_000, "docs/performance.md, Shards"))

This is the only place where the plan has numbers. Those that were measured name the section of docs/performance.md;
those that are *estimated* stand for a measurement that is still to be made; those that are *chosen* are margins and
settings, which no measurement can give.
"""

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Self


class CostOrigin(Enum):
    """Where the value of a constant comes from."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class UnitCost:
    """One constant of the plan.

    Attributes:
        name: What it is, unique among the constants.
        value: In `unit`.
        unit: Its unit; bytes and seconds are decimal.
        reason: Where it was measured, or why it is assumed.
        origin: Whether it was measured, estimated or chosen.
    """

    name: str
    value: float
    unit: str
    reason: str
    origin: CostOrigin = CostOrigin.MEASURED

    @property
    def source(self) -> str:
        """Where the value comes from, in words, which begin with the origin unless it was measured."""
        return self.reason if self.origin is CostOrigin.MEASURED else f"{self.origin.value}: {self.reason}"

    def measured(self, value: float, source: str) -> Self:
        """Return this constant with a measured value.

        Args:
            value: In the unit of this constant.
            source: Where it was measured.

        Returns:
            The constant.

        Example:
            >>> UnitCosts().outcome_page.measured(0.5, "a run").origin.value
            'measured'
        """
        return replace(self, value=value, reason=source, origin=CostOrigin.MEASURED)


_ESTIMATED, _CHOSEN = CostOrigin.ESTIMATED, CostOrigin.CHOSEN


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """All constants of the plan, by what they belong to."""

    # Shards and resolver. Their rates are to be measured with a broker and outputs.
    shard_rate: UnitCost = UnitCost(
        "pages a second of a shard",
        20_000,
        "pages/s",
        "22,000 without a broker at 10^7 entries (performance.md, Shards); not measured above",
        _ESTIMATED,
    )
    resolver_rate: UnitCost = UnitCost(
        "pages a second of the resolver",
        15_000,
        "pages/s",
        "38,500 without broker and outputs, 12,200 with all outputs (performance.md, Shards); several share these",
        _ESTIMATED,
    )
    candidates_page: UnitCost = UnitCost(
        "answers of all shards",
        135,
        "bytes/page",
        "performance.md, Shards: of four, a fifth copies, before compression",
    )
    outcome_page: UnitCost = UnitCost("outcome", 0.4, "bytes/page", "performance.md, Shards: a bit, and removals")

    # Kept pages in a shard.
    memory_page: UnitCost = UnitCost(
        "memory of a kept page", 137.2, "bytes", "performance.md, The store: line through 225, 146, 137 at 10^6, 7, 8"
    )
    memory_store: UnitCost = UnitCost(
        "memory of a store beside its pages", 87.8e6, "bytes", "performance.md, The store: the same line at 0 pages"
    )
    memory_process: UnitCost = UnitCost(
        "memory of a process", 0.3e9, "bytes", "performance.md, Memory and disk: service, fixed, main process"
    )
    memory_worker: UnitCost = UnitCost(
        "memory of a worker process", 0.25e9, "bytes", "performance.md, Memory and disk: service, fixed, each worker"
    )
    disk_page: UnitCost = UnitCost(
        "disk of a kept page", 814, "bytes", "performance.md, The store: 40.7 GB at most for 5·10^7, expiry running"
    )
    disk_names: UnitCost = UnitCost(
        "names of a kept page",
        100,
        "bytes",
        "mean length of an URL and an id; generated pages have shorter ones",
        _ESTIMATED,
    )
    reads_page: UnitCost = UnitCost(
        "reads of 4 KiB, all shards together",
        1.5,
        "reads/page",
        "one decider, 10^8 pages, 7 of 28 GB cached (performance.md, The store); a shard has its part",
        _ESTIMATED,
    )
    disk_reads: UnitCost = UnitCost(
        "random reads of a disk", 14_200, "reads/s", "performance.md, The store: reads of 4 KiB by one thread"
    )
    shard_rows: UnitCost = UnitCost(
        "rows of a store", 2**32, "pages", "runtime/store/page_store: row numbers have 32 bits"
    )

    # Fingerprinting.
    text_letter: UnitCost = UnitCost(
        "preparing a letter of text", 0.1e-6, "s", "performance.md, Kafka, throughput: worker, .07 ms for 700 letters"
    )
    text_client: UnitCost = UnitCost(
        "reading and appending a text", 0.13e-3, "s", "performance.md, Kafka, throughput: main process, so at most"
    )
    html_worker: UnitCost = UnitCost(
        "preparing a page of HTML", 1.7e-3, "s", "performance.md, Kafka, throughput: worker, HTML of 60 KB"
    )
    html_client: UnitCost = UnitCost(
        "reading and appending HTML", 0.7e-3, "s", "performance.md, Kafka, throughput: main process, so at most"
    )

    # Messages.
    log_page: UnitCost = UnitCost(
        "a page in the log", 700, "bytes", "performance.md, Log records: with evidence and keys, lz4"
    )
    letter_bytes: UnitCost = UnitCost(
        "a letter of text in `pages`", 1.5, "bytes", "performance.md, Compression of pages: half of 3 bytes (Chinese)"
    )
    html_bytes: UnitCost = UnitCost(
        "a page of HTML in `pages`", 60_000 / 7, "bytes", "performance.md, Compression of pages: a seventh of 60 KB"
    )
    verdict_bytes: UnitCost = UnitCost(
        "a verdict", 300, "bytes/page", "two ids, address and reason, compressed", _ESTIMATED
    )
    batch_pages: UnitCost = UnitCost(
        "pages in a record of the log", 100, "pages", "some hundred at most, by the rate", _CHOSEN
    )
    append_s: UnitCost = UnitCost(
        "appending a batch", 0.015, "s", "performance.md, Transactions: 15 ms for one message, so at most"
    )
    hop_s: UnitCost = UnitCost(
        "append until a reader has it",
        0.022,
        "s",
        "simulated with it, the service has p50 96 ms at 831 pages/s, as measured (performance.md, Kafka, latency)",
        _ESTIMATED,
    )

    # Restore.
    open_page: UnitCost = UnitCost(
        "opening a store, a kept page", 240e-9, "s", "performance.md, Restore: 24 s for 10^8 kept pages"
    )
    start_s: UnitCost = UnitCost(
        "start of a process", 5.2, "s", "performance.md, Restore: start to the first verdict, imports included"
    )
    commit_pages: UnitCost = UnitCost(
        "pages between two commits", 100_000, "pages", "as runtime/kafka/state/deciding_store does", _CHOSEN
    )
    commit_wait_s: UnitCost = UnitCost(
        "wait of a shard for a commit", 0.07, "s", "performance.md, Restore: the deciding thread, 10^8 kept pages"
    )
    decode_page: UnitCost = UnitCost("decoding a page of the log", 9e-6, "s", "performance.md, Log records: 7 to 11 µs")
    fill_page: UnitCost = UnitCost(
        "filling in a kept page", 30e-6, "s", "performance.md, The store: 15 to 30 µs, without any search"
    )

    # Margins and settings.
    full_memory: UnitCost = UnitCost(
        "share of memory in use at most", 0.8, "", "a fifth is for page cache, system and growth", _CHOSEN
    )
    full_disk: UnitCost = UnitCost(
        "share of a disk in use at most", 0.8, "", "a fifth is for compaction and growth", _CHOSEN
    )
    full_rate: UnitCost = UnitCost(
        "share of a rate in use at most", 0.8, "", "queues grow without bound near 1", _CHOSEN
    )
    full_network: UnitCost = UnitCost(
        "share of a network in use at most", 0.5, "", "half is for restores and peaks", _CHOSEN
    )
    broker_copies: UnitCost = UnitCost("replicas of a topic", 3, "", "default of `topics create`", _CHOSEN)
    fingerprint_machines: UnitCost = UnitCost(
        "machines that fingerprint, at least", 2, "", "one goes on when the other ends", _CHOSEN
    )
    resolvers: UnitCost = UnitCost(
        "resolvers", 2, "", "one goes on when the other ends; readers take the first answer", _CHOSEN
    )
    pages_kept_s: UnitCost = UnitCost(
        "retention of pages and outputs", 7 * 86_400, "s", "default of `topics create`: 7d", _CHOSEN
    )
    candidates_kept_s: UnitCost = UnitCost(
        "retention of `candidates`", 86_400, "s", "longer than a resolver may be without a snapshot", _CHOSEN
    )

    def by_key(self) -> dict[str, UnitCost]:
        """Return every constant by its name in this class, in their order."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
