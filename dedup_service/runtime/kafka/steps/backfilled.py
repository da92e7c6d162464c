"""Pages of files in the log (`twinsieve backfill`): which verdicts on them to write, and how far the log is decided.

They are in no partition of `pages`, so the owner of its partition 0 writes for all of them: verdicts, where the
backfill asked for them, and up to which sequence of the log all is decided and written (`dedup.offsets`, step
`backfilled`). A backfill reads that to see how far the deciding step is behind it, whatever it asked for. A log without
such pages costs nothing here.

Invariant: what is below the sequence in `dedup.offsets` is written; both are in one transaction, which the generation
of the group fences, since it commits an offset of partition 0, too.
"""

from collections.abc import Sequence

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import is_backfilled
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED, PendingOutcomes
from dedup_service.runtime.kafka.steps.page_buffer import Ready


class BackfilledPages:
    """What is to be written for the pages of files that a replica has applied."""

    def __init__(self, replica: Replica) -> None:
        # Who restores a log does not look at pages whose outcomes nobody wants, so any may be the last one.
        self._applied = replica.sequence if replica.counts["backfilled_files"] else -1

    def applied(self, parts: Sequence[LogPart]) -> None:
        """Take it that these parts of the log were applied."""
        for part in parts:
            if isinstance(part, RecordColumns) and is_backfilled(part.topic):
                self._applied = part.sequences[-1]

    def ready(self, outcomes: PendingOutcomes, most: int) -> list[Ready]:
        """Return the verdicts that can be written, in the order of the log, at most `most`."""
        return [Ready(place, outcome, None, needs_page=False) for place, outcome in outcomes.backfilled(most)]

    def decided_below(self, ready: Sequence[Ready], outcomes: PendingOutcomes) -> int | None:
        """Return the sequence below which all is written once `ready` is; None if that is known already."""
        more = len(outcomes.backfilled(len(ready) + 1)) > len(ready)
        end = ready[-1].end if more and ready else self._applied + 1
        return end if end > outcomes.written.get(BACKFILLED, 0) else None
