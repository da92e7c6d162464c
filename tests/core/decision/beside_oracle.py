"""A decider and the brute-force oracle side by side: every verdict is compared, and which entries are live."""

import json

from dedup_service.core.decision.decider import Decision
from dedup_service.core.log_records import (
    CorrectionRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    UnwrittenRecord,
)
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from tests.core.decision.crowded import Run
from tests.core.decision.generated import Change
from tests.oracle.log import Oracle

SPACE = "space"


class Both:
    """A decider and the oracle, given the same pages and changes."""

    def __init__(self, rule: MatchRule, layout: IndexLayout) -> None:
        self.run, self.oracle = Run(rule, layout), Oracle()
        self._bounds = KEEP_ALL
        self._follow(KEEP_ALL)

    def decide(self, pages: list[PreparedPage], *, batch: bool) -> list[Decision]:
        """Decide pages twice and compare every field of their verdicts."""
        first = self.run.sequence + 1
        decisions = self.run.decide(pages, batch=batch)
        for sequence, (page, decision) in enumerate(zip(pages, decisions, strict=True), first):
            source = Source("pages", 0, sequence)
            self.oracle.read(sequence, PageRecord(source, page, SPACE))
            value = self.oracle.answers[source].value
            assert value is not None
            assert _fields(decision) == {name: json.loads(value)[name] for name in _fields(decision)}
        return decisions

    def change(self, change: Change) -> None:
        """Apply a change to both."""
        match change:
            case Keep():
                self.run.decider.expiry.keep = change
                self._follow(change)
                return
            case TimeRecord(minute):
                self.run.decider.expiry.advance(self.run.sequence, minute)
            case RetractionRecord():
                self._remove(change.url)
            case CorrectionRecord():
                self.run.corrections.append(change)
                self.run.overrides.add(change)
                if change.duplicate:
                    self._remove(change.url)
        self.oracle.read(self.run.sequence, change)

    def drop(self, sequences: list[int]) -> None:
        """Remove entries by their sequences, as a log says whose pages were never passed on."""
        for sequence in sequences:
            self.run.decider.drop(sequence)
        self.oracle.read(self.run.sequence, UnwrittenRecord(tuple(sequences), "lost"))

    def live(self) -> list[int]:
        """The sequences that have an entry, of which decider and oracle agree."""
        live = [sequence for sequence in range(1, self.run.sequence + 1) if self.run.decider.holds(sequence)]
        assert live == [sequence for sequence in range(1, self.run.sequence + 1) if self.oracle.holds(sequence)]
        assert len(self.run.decider) == len(live)
        return live

    def restore(self) -> None:
        """Go on in another decider, from the entries and the state of this one."""
        self.run = Run(self.run.rule, self.run.layout, self.run)

    def _remove(self, url: str) -> None:
        visit = self.run.decider.sequence_of(url)
        if visit is not None:
            self.run.decider.retract(visit)

    def _follow(self, keep: Keep) -> None:
        policy = Policy(self.run.rule, Action.FLAG, SPACE, self.run.layout, keep)
        self.oracle.read(self.run.sequence, PolicyRecord(policy))


def _fields(decision: Decision) -> dict[str, object]:
    """Return the fields of a verdict as the oracle writes them."""
    verdict = decision.verdict
    return {
        "sequence": verdict.sequence,
        "id": verdict.id,
        "url": verdict.url,
        "verdict": verdict.kind.value,
        "duplicate_of": verdict.duplicate_of,
        "duplicate_of_url": verdict.duplicate_of_url,
        "distance": {"words": verdict.distance.words, "body": verdict.distance.body},
        "score": verdict.score,
        "reason": verdict.reason,
        "space": verdict.space,
    }
