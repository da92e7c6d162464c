"""Outcomes that wait for their pages."""

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import RejectedRecord, Source
from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.runtime.kafka.messages.page_batch import decode_columns, encode_batch
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes


def outcome(
    offset: int, kind: VerdictKind = VerdictKind.UNIQUE, action: Action = Action.FLAG, partition: int = 0
) -> Outcome:
    """Return the outcome of a page at an offset of `pages`."""
    verdict = Verdict(sequence=100 + offset, id="x", url="http://x/", kind=kind, space="space")
    return Outcome(Source("pages", partition, offset), 100 + offset, "http://x/", verdict, None, action)


def test_an_outcome_is_pending_until_it_is_written() -> None:
    """Once removed it is known to be written, and cannot be added again."""
    outcomes = PendingOutcomes()
    outcomes.add(outcome(5))
    assert outcomes.get(Source("pages", 0, 5)) is not None
    outcomes.forget(Source("pages", 0, 5))
    outcomes.add(outcome(5))
    assert outcomes.get(Source("pages", 0, 5)) is None
    assert len(outcomes) == 0


def test_outcomes_that_another_process_wrote_are_removed() -> None:
    """All offsets below the committed one are removed, of that partition only."""
    outcomes = PendingOutcomes()
    for offset in range(5):
        outcomes.add(outcome(offset))
        outcomes.add(outcome(offset, partition=1))
    outcomes.written_below("pages", 0, 3)
    assert sorted(source.offset for source, _ in outcomes.items() if source.partition == 0) == [3, 4]
    assert len(outcomes) == 7


def test_offsets_that_were_reset_change_nothing() -> None:
    """What is known to be written stays known."""
    outcomes = PendingOutcomes(written={("pages", 0): 10})
    outcomes.written_below("pages", 0, 4)
    outcomes.add(outcome(7))
    assert outcomes.written == {("pages", 0): 10}
    assert len(outcomes) == 0


def test_outcomes_of_a_snapshot_are_pending_again() -> None:
    """Outcomes that were written since then are not pending."""
    outcomes = PendingOutcomes()
    for offset in range(4):
        outcomes.add(outcome(offset))
    restored = PendingOutcomes(dict(outcomes.items()), {("pages", 0): 2})
    assert sorted(source.offset for source, _ in restored.items()) == [2, 3]
    assert restored.partitions == {("pages", 0)}


def test_outcomes_of_another_topic_are_not_pending() -> None:
    """Their pages are not read here, so no process would ever write them."""
    outcomes = PendingOutcomes(topic="other.pages")
    outcomes.add(outcome(5))
    assert len(outcomes) == 0


def test_only_the_drop_action_withholds_pages() -> None:
    """It withholds only pages that repeat another."""
    dropped = [
        (kind, action)
        for kind in VerdictKind
        for action in Action
        if PendingOutcome.from_outcome(outcome(1, kind, action)).drop
    ]
    assert dropped == [(VerdictKind.DUPLICATE, Action.DROP), (VerdictKind.UNCHANGED, Action.DROP)]


def test_a_rejected_record_is_pending_with_its_problem() -> None:
    """It has no verdict; its value is the problem."""
    pending = PendingOutcome.from_outcome(Outcome(Source("pages", 0, 1), 9, None, None, "not JSON", Action.FLAG))
    assert (pending.kind, pending.value) == (None, b"not JSON")


def test_outcomes_of_a_range_come_in_order() -> None:
    """Only those of the partition that are pending, by offset, whether the range or the outcomes are more."""
    outcomes = PendingOutcomes()
    for offset in (3, 9, 4, 7):
        outcomes.add(outcome(offset))
    outcomes.add(outcome(5, partition=1))
    for end in (8, 10**9):
        within = [source.offset for source, _ in outcomes.between(Source("pages", 0, 4), end)]
        assert within == [offset for offset in (4, 7, 9) if offset < end]
    assert outcomes.between(Source("pages", 2, 0), 10) == []


def test_the_next_pending_outcome_of_a_partition_is_found() -> None:
    """However far it is, and whatever was written between."""
    outcomes = PendingOutcomes()
    for offset in (3, 5, 5000):
        outcomes.add(outcome(offset))
    outcomes.add(outcome(4, partition=1))
    assert [outcomes.next_after(Source("pages", 0, offset)) for offset in (0, 3, 5, 5000)] == [3, 5, 5000, None]
    outcomes.forget(Source("pages", 0, 3))
    assert outcomes.next_after(Source("pages", 0, 0)) == 5
    assert outcomes.next_after(Source("pages", 2, 0)) is None


def test_a_later_outcome_of_the_same_partition_is_known() -> None:
    """It stays known once it is written: the log has the records of a partition in order."""
    outcomes = PendingOutcomes()
    outcomes.add(outcome(5))
    outcomes.forget(Source("pages", 0, 5))
    assert outcomes.has_later(Source("pages", 0, 4))
    assert not outcomes.has_later(Source("pages", 0, 5))
    assert not outcomes.has_later(Source("pages", 1, 4))


def test_outcomes_are_wanted_as_they_would_be_added() -> None:
    """Those of records that are not known to be written, of the topic whose outputs are written here."""
    sources = [Source("pages", partition, offset) for offset in range(5) for partition in (0, 1)]
    records = decode_columns(encode_batch([RejectedRecord(source, "no page") for source in sources]))
    written = {("pages", 0): 3}
    outcomes, others = PendingOutcomes(written=written, topic="pages"), PendingOutcomes(topic="other.pages")
    wanted = [source for source, is_wanted in zip(sources, outcomes.wanted(records), strict=True) if is_wanted]
    for source in sources:
        outcomes.add(outcome(source.offset, partition=source.partition))
    assert wanted == [source for source in sources if outcomes.get(source) is not None]
    assert not any(others.wanted(records))
