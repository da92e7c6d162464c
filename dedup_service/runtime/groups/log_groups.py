"""Pages of a service's log for groups: its records, as a replica decides them, into whatever takes the pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dedup_service.core.dates import day_of
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.groups.member import Removal
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    RetractionRecord,
    UnwrittenRecord,
)
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.groups.spool import PageSink

TimedRecord = tuple[int, int, LogRecord]
"""A record of the log: when it was logged, Unix milliseconds, and its sequence."""


@dataclass(slots=True)
class LogGroups:
    """Adds the pages of a log to a spool, in order, as `replica` decides them."""

    replica: Replica
    spool: PageSink

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
                        if unwritten < sequence:  # as the replica does: none can say so of a page that comes later
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
            sentences=evidence.sentence_values,
            logged_ms=logged_ms,
            source=record.source,
        )


def _runs(batch: Sequence[TimedRecord]) -> list[tuple[int, int]]:
    """Return the parts of a batch, each of which begins with a correction or has none."""
    starts = [place for place, (_, _, record) in enumerate(batch) if isinstance(record, CorrectionRecord)]
    bounds = sorted({0, *starts, len(batch)})
    return list(pairwise(bounds))
