"""Outcomes that wait for their pages."""

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes


def outcome(
    offset: int, kind: VerdictKind = VerdictKind.UNIQUE, action: Action = Action.FLAG, partition: int = 0
) -> Outcome:
    """Return the outcome of a page at an offset of `pages`."""
    verdict = Verdict(sequence=100 + offset, id="x", url="http://x/", kind=kind, space="space")
    return Outcome(Source("pages", partition, offset), 100 + offset, "http://x/", verdict, None, action)


def test_offsets_that_were_reset_change_nothing() -> None:
    """What is known to be written stays known."""
    outcomes = PendingOutcomes(written={("pages", 0): 10})
    outcomes.written_below("pages", 0, 4)
    outcomes.add(outcome(7))
    assert outcomes.written == {("pages", 0): 10}
    assert len(outcomes) == 0


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
