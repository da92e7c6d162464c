"""PendingOutcomes that wait for their pages."""

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes


def outcome(
    offset: int, kind: VerdictKind = VerdictKind.UNIQUE, action: Action = Action.FLAG, partition: int = 0
) -> Outcome:
    """The outcome of a page at an offset of `pages`."""
    verdict = Verdict(sequence=100 + offset, id="x", url="http://x/", kind=kind, space="space")
    return Outcome(Source("pages", partition, offset), 100 + offset, "http://x/", verdict, None, action)


def test_an_outcome_waits_until_it_is_written() -> None:
    """Once forgotten it is known to be written, and does not come back."""
    outcomes = PendingOutcomes()
    outcomes.add(outcome(5))
    assert outcomes.get("pages", 0, 5) is not None
    outcomes.forget("pages", 0, 5)
    outcomes.add(outcome(5))
    assert outcomes.get("pages", 0, 5) is None
    assert len(outcomes) == 0


def test_what_another_process_wrote_is_forgotten() -> None:
    """All offsets below the committed one, of that partition only."""
    outcomes = PendingOutcomes()
    for offset in range(5):
        outcomes.add(outcome(offset))
        outcomes.add(outcome(offset, partition=1))
    outcomes.written_below("pages", 0, 3)
    assert sorted(source.offset for source, _ in outcomes.items() if source.partition == 0) == [3, 4]
    assert len(outcomes) == 7


def test_offsets_that_went_back_change_nothing() -> None:
    """What is known to be written stays so."""
    outcomes = PendingOutcomes(written={("pages", 0): 10})
    outcomes.written_below("pages", 0, 4)
    outcomes.add(outcome(7))
    assert outcomes.written == {("pages", 0): 10}
    assert len(outcomes) == 0


def test_outcomes_of_a_snapshot_wait_again() -> None:
    """But for those that were written since."""
    outcomes = PendingOutcomes()
    for offset in range(4):
        outcomes.add(outcome(offset))
    again = PendingOutcomes(dict(outcomes.items()), {("pages", 0): 2})
    assert sorted(source.offset for source, _ in again.items()) == [2, 3]
    assert again.partitions == {("pages", 0)}


def test_outcomes_of_another_topic_do_not_wait() -> None:
    """Their pages are not read here, so nobody would ever write them."""
    outcomes = PendingOutcomes(topic="other.pages")
    outcomes.add(outcome(5))
    assert len(outcomes) == 0


def test_only_the_drop_action_keeps_pages_back() -> None:
    """And only pages that repeat something."""
    dropped = [
        (kind, action) for kind in VerdictKind for action in Action if PendingOutcome.of(outcome(1, kind, action)).drop
    ]
    assert dropped == [(VerdictKind.DUPLICATE, Action.DROP), (VerdictKind.UNCHANGED, Action.DROP)]


def test_a_rejected_record_waits_with_its_problem() -> None:
    """It has no verdict."""
    pending = PendingOutcome.of(Outcome(Source("pages", 0, 1), 9, None, None, "not JSON", Action.FLAG))
    assert (pending.kind, pending.value) == (None, b"not JSON")
