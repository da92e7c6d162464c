"""What is written about pages of files: verdicts where they are wanted, and up to where the log is decided."""

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.log_records import BackfillRecord, PageRecord, Source, backfill_topic
from dedup_service.core.record_columns import RecordColumns
from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.runtime.kafka.messages.page_batch import decode_columns, encode_batch
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED, PendingOutcomes
from dedup_service.runtime.kafka.steps.backfilled import BackfilledPages
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID, prepared

WANTED, SILENT = (backfill_topic("a", "1f", reported=reported) for reported in (True, False))


def outcome(topic: str, sequence: int, offset: int) -> Outcome:
    verdict = Verdict(sequence=sequence, id="i", url="https://a.example/", kind=VerdictKind.UNIQUE, space=SPACE_ID)
    return Outcome(Source(topic, 1, offset), sequence, "https://a.example/", verdict, None, Action.FLAG)


def part(topic: str, sequence: int, count: int) -> RecordColumns:
    """Pages of a file in columns."""
    sources = [Source(topic, 1, offset) for offset in range(count)]
    records = [PageRecord(source, prepared(f"p{source.offset}", source.offset), SPACE_ID) for source in sources]
    return decode_columns(encode_batch(records), sequence)


def test_verdicts_that_are_wanted_are_pending_at_their_sequences() -> None:
    """In the order of the log, whatever file they are of; others, and what is written, never are."""
    outcomes = PendingOutcomes(topic="pages")
    for sequence, topic in ((10, WANTED), (11, SILENT), (12, WANTED), (13, WANTED)):
        outcomes.add(outcome(topic, sequence, 100 - sequence))
    assert [place for place, _ in outcomes.backfilled(2)] == [Source(*BACKFILLED, 10), Source(*BACKFILLED, 12)]
    outcomes.written_below(*BACKFILLED, 13)
    outcomes.add(outcome(WANTED, 10, 90))
    assert [place.offset for place, _ in outcomes.backfilled(9)] == [13]
    wanted = [outcomes.wanted(part(topic, 12, 3)) for topic in (WANTED, SILENT)]
    assert wanted == [[False, True, True], [False] * 3]


def test_a_sequence_is_named_once_all_below_it_is_written() -> None:
    """With part of the verdicts, that behind the last one; then that behind what was applied, and nothing twice."""
    outcomes, backfilled = PendingOutcomes(topic="pages"), BackfilledPages(Replica(NamesInMemory()))
    assert backfilled.decided_below([], outcomes) is None
    for sequence in (20, 21, 22):
        outcomes.add(outcome(WANTED, sequence, sequence))
    backfilled.applied([part(WANTED, 20, 3), (40, BackfillRecord(Source(SILENT, 1, 0), "/f")), part(SILENT, 50, 5)])
    ready = backfilled.ready(outcomes, 2)
    assert [item.source.offset for item in ready] == [20, 21]
    assert backfilled.decided_below(ready, outcomes) == 22
    outcomes.written_below(*BACKFILLED, 22)
    ready = backfilled.ready(outcomes, 2)
    assert backfilled.decided_below(ready, outcomes) == 55
    outcomes.written_below(*BACKFILLED, 55)
    assert backfilled.decided_below(backfilled.ready(outcomes, 2), outcomes) is None
