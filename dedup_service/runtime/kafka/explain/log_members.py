"""Pages of a service's log for groups: the whole log is read and decided again.

A replay gives the same verdicts byte for byte, so the log alone is needed: neither the topic `verdicts`, which
expires, nor a running service. It costs what `twinsieve replay` does, and the memory of the kept pages.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise

from dedup_service.core.dates import day_of
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.groups import Removal
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    RetractionRecord,
    UnwrittenRecord,
)
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.groups.spool import GroupSpool, Progress
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.control.operator_records import require_begun
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, numbered
from dedup_service.runtime.kafka.state.page_names import temporary_page_names
from dedup_service.runtime.kafka.topics import Topics

__all__ = ["LogGroups", "TimedRecord", "spool_log"]

TimedRecord = tuple[int, int, LogRecord]
"""A record of the log: when it was logged, Unix milliseconds, and its sequence."""


def spool_log(connection: Connection, topics: Topics, spool: GroupSpool, progress: Progress) -> dict[str, int]:
    """Add the pages of the log up to its present end to `spool`, with the hosts' own text there.

    progress: (records, records of the log). Return the counts of the replica. Raises ForeignLogError if no service has
    begun the log, BrokerError if it cannot be read.
    """
    with ExitStack() as stack:
        replica = Replica(stack.enter_context(temporary_page_names()))
        log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
        require_begun(connection, topics, log)
        groups = LogGroups(replica, spool)
        for messages in log.read_to_end(progress, max_records=MESSAGES_AT_ONCE):
            groups.take([(message.timestamp, *pair) for message in messages for pair in numbered([message])])
        spool.host_text = replica.host_text()
        return dict(replica.counts)


@dataclass(slots=True)
class LogGroups:
    """Adds the records of a log to a spool, in order, as `replica` decides them."""

    replica: Replica
    spool: GroupSpool

    def take(self, batch: Sequence[TimedRecord]) -> None:
        """Take the next records of the log."""
        for start, end in _runs(batch):
            run = batch[start:end]
            self._before(run[0][2])
            outcomes = self.replica.apply_many([(sequence, record) for _, sequence, record in run])
            for (logged_ms, sequence, record), outcome in zip(run, outcomes, strict=True):
                if isinstance(record, PageRecord):
                    self._page(logged_ms, record, outcome)
                elif isinstance(record, RetractionRecord):
                    self.spool.retract(record.url, sequence)
                elif isinstance(record, UnwrittenRecord):
                    for unwritten in record.sequences:
                        self.spool.remove(unwritten, Removal.UNWRITTEN)

    def _before(self, record: LogRecord) -> None:
        """Note which entry a correction removes, while it is there."""
        if isinstance(record, CorrectionRecord) and record.duplicate:
            removed = self.replica.sequence_of(record.url)
            if removed is not None:
                self.spool.remove(removed, Removal.CORRECTION)

    def _page(self, logged_ms: int, record: PageRecord, outcome: Outcome | None) -> None:
        """Add a page; a repeated record of the same delivery has no outcome."""
        if outcome is None or outcome.verdict is None:
            return
        page, verdict = record.prepared.page, outcome.verdict
        evidence = Evidence(record.prepared.evidence)
        if verdict.kind is VerdictKind.UPDATED and not verdict.by_claim and outcome.original is not None:
            self.spool.remove(outcome.original, Removal.UPDATE)
        self.spool.add(
            verdict,
            page.canonical_url,
            outcome.original,
            title=page.title,
            published=day_of(page.date),
            text_percent=page.text_percent,
            letters=evidence.letters,
            sentence_count=evidence.sentence_count,
            sentences=evidence.sentence_values.tobytes(),
            logged_ms=logged_ms,
            source=record.source,
        )


def _runs(batch: Sequence[TimedRecord]) -> list[tuple[int, int]]:
    """Return the parts of a batch, each of which begins with a correction or has none."""
    starts = [place for place, (_, _, record) in enumerate(batch) if isinstance(record, CorrectionRecord)]
    bounds = sorted({0, *starts, len(batch)})
    return list(pairwise(bounds))
