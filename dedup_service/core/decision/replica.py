"""What reading the log gives: the entries, the policy in force, and an outcome for every input record.

    outcome = replica.apply(sequence, record)

A pure function of the log, record by record: two replicas that read the same records have the same state and gave
the same outcomes, whoever ran them, from the log's beginning or from the memory of another replica. So a verdict
needs no agreement between processes beyond the order of the log (rules 3 and 6 of the design).

Invariant: an input record (topic, partition, offset) has one outcome, however often it is in the log.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from pyroaring import BitMap64  # sets of offsets: runs and bitmaps, a few bytes for a million offsets in a row

from dedup_service.core.decision.candidates import CandidateSizes, LocalCandidates
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.guard_tracker import GuardState, GuardTracker
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
)
from dedup_service.core.verdict import Action, Verdict, VerdictKind

__all__ = ["Outcome", "PageNameIndex", "Replica", "ReplicaState"]

_LEFT = 1000
_TOGETHER = 512
"""Pages decided together: comparing all pairs of them takes about 1 ms."""


class PageNameIndex(Protocol):
    """Whoever remembers what the kept pages were called."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`."""
        ...

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Remember the kept page at `sequence`."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an input record: its verdict under the action in force, or why it was rejected.

    canonical_url: of a page; None for a record that was rejected. title: of a page. of: sequence of the page that the
    verdict names, or None.
    """

    source: Source
    sequence: int
    canonical_url: str | None
    verdict: Verdict | None
    problem: str | None
    action: Action
    title: str = ""
    original: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """All of a replica but its entries and names, at `sequence`.

    log: identity of the log. seen: (topic, partition) → offsets that have their outcome, a serialised BitMap64.
    counts: pages by verdict, by guard, and other records by kind. corrections: those that hold, oldest first.
    watch: what the guards have seen; None where the rule has none.
    """

    sequence: int = -1
    log: str | None = None
    policy: Policy | None = None
    seen: Mapping[tuple[str, int], bytes] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    corrections: tuple[CorrectionRecord, ...] = ()
    watch: GuardState | None = None


class Replica:
    """A reader's state.

    names: of the kept pages. rows, memory: of a snapshot, or neither. shards: parts of the index.
    """

    def __init__(
        self,
        names: PageNameIndex,
        *,
        shards: int = 1,
        rows: EntryRows | None = None,
        memory: ReplicaState | None = None,
    ) -> None:
        memory = memory or ReplicaState()
        self.sequence = memory.sequence
        self.log = memory.log
        self.policy = memory.policy
        self.counts: Counter[str] = Counter(memory.counts)
        self._names = names
        self._shards = shards
        self._overrides = Overrides(memory.corrections)
        self._candidates: LocalCandidates | None = None
        self._left: deque[tuple[str, str]] = deque(maxlen=_LEFT)
        self._seen = {source: BitMap64.deserialize(offsets) for source, offsets in memory.seen.items()}
        self._decider = None if self.policy is None else self._made(self.policy, rows, GuardTracker(memory.watch))

    def __len__(self) -> int:
        """Entries: kept pages that later ones are compared with."""
        return 0 if self._decider is None else len(self._decider)

    def apply(self, sequence: int, record: LogRecord) -> Outcome | None:
        """Take the record at `sequence` in, and return the outcome of its input record.

        sequence: larger than any before; there may be gaps. None: no input record, or one that has its outcome.
        StateError for a page before any policy; nothing has changed then.
        """
        outcome: Outcome | None = None
        match record:
            case PageRecord():
                outcome = self._page(sequence, record)
            case RejectedRecord():
                outcome = self._rejected(sequence, record)
            case RetractionRecord():
                self._retract(record.url, "retraction")
                self.counts["retraction"] += 1
            case CorrectionRecord():
                self._correct(record)
            case PolicyRecord():
                self._change_policy(record)
        self.sequence = sequence
        return outcome

    def apply_many(self, records: Sequence[tuple[int, LogRecord]]) -> list[Outcome | None]:
        """Take records in, in their order, and return their outcomes: the same as one by one, in half the time."""
        outcomes: list[Outcome | None] = []
        for plain, run in groupby(records, key=lambda at: isinstance(at[1], PageRecord | RejectedRecord)):
            some = list(run)
            for start in range(0, len(some), _TOGETHER):
                outcomes += self._apply_run(some[start : start + _TOGETHER], batch=plain)
        return outcomes

    def held(self) -> HeldEntries:
        """Return the live entries in pieces, within milliseconds however many they are."""
        return HeldEntries() if self._decider is None else self._decider.held()

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None."""
        return None if self._decider is None else self._decider.sequence_of(canonical_url)

    @property
    def corrections(self) -> tuple[CorrectionRecord, ...]:
        """The corrections that hold, oldest first."""
        return self._overrides.records

    def rows(self) -> EntryRows:
        """Return the live entries, in order of sequence."""
        return EntryRows.none() if self._decider is None else self._decider.rows()

    def sizes(self) -> CandidateSizes | None:
        """Return how the indexes stand, None before there is a policy; takes about 1 ms."""
        return None if self._candidates is None else self._candidates.sizes()

    def take_left(self) -> list[tuple[str, str]]:
        """Return the kept pages that left since the last call, no update in their place: (`retraction` …, URL).

        The last thousand of them: for whoever watches.
        """
        left = list(self._left)
        self._left.clear()
        return left

    def memory(self) -> ReplicaState:
        """Return the rest, for a snapshot."""
        return ReplicaState(
            sequence=self.sequence,
            log=self.log,
            policy=self.policy,
            seen={source: offsets.serialize() for source, offsets in self._seen.items()},
            counts=dict(self.counts),
            corrections=self._overrides.records,
            watch=None if self._watch is None else self._watch.memory(),
        )

    def _apply_run(self, run: Sequence[tuple[int, LogRecord]], *, batch: bool) -> list[Outcome | None]:
        if self._decider is None or not batch:
            return [self.apply(sequence, record) for sequence, record in run]
        pages = [(sequence, record.prepared) for sequence, record in run if isinstance(record, PageRecord)]
        with self._decider.batch(pages):
            return [self.apply(sequence, record) for sequence, record in run]

    def _page(self, sequence: int, record: PageRecord) -> Outcome | None:
        if self._decider is None or self.policy is None:
            raise StateError(
                f"the log has a page at {sequence} before any policy: it was not begun by twinsieve; "
                "create the topics anew, or give the right --prefix"
            )
        if not self._first_time(record.source):
            return None
        original: int | None = None
        if record.space_id != self.policy.space_id:
            verdict = self._foreign(sequence, record, self.policy.space_id)
        else:
            decision = self._decider.decide(sequence, record.prepared)
            verdict, original = decision.verdict, decision.original
            if decision.entry is not None:
                self._names.add(sequence, verdict.id, verdict.url)
        self.counts[verdict.kind.value] += 1
        if verdict.guard is not None:
            self.counts[f"guard_{verdict.guard}"] += 1
        page = record.prepared.page
        return Outcome(
            record.source,
            sequence,
            page.canonical_url,
            verdict,
            None,
            self.policy.action,
            title=page.title,
            original=original,
        )

    def _rejected(self, sequence: int, record: RejectedRecord) -> Outcome | None:
        if not self._first_time(record.source):
            return None
        self.counts["rejected"] += 1
        action = Action.FLAG if self.policy is None else self.policy.action
        return Outcome(record.source, sequence, None, None, record.problem, action)

    def _first_time(self, source: Source) -> bool:
        """Whether the log had not this input record yet; it has now."""
        key = (source.topic, source.partition)
        offsets = self._seen.get(key)
        if offsets is None:
            offsets = self._seen[key] = BitMap64()
        if source.offset in offsets:
            self.counts["repeated"] += 1
            return False
        offsets.add(source.offset)
        return True

    def _foreign(self, sequence: int, record: PageRecord, space_id: str) -> Verdict:
        page = record.prepared.page
        return Verdict(
            sequence=sequence,
            id=page.id,
            url=page.url,
            kind=VerdictKind.UNDECIDED,
            space=record.space_id,
            reason=f"made in space {record.space_id}, this log is of {space_id}",
        )

    def _retract(self, url: str, why: str) -> None:
        """Take the kept page of `url` out, where there is one: the record may come twice."""
        visit = None if self._decider is None else self._decider.sequence_of(url)
        if self._decider is not None and visit is not None:
            self._decider.retract(visit)
            self._left.append((why, url))

    def _correct(self, record: CorrectionRecord) -> None:
        self._overrides.add(record)
        if record.duplicate:
            self._retract(record.url, "correction")
        self.counts["correction"] += 1

    def _change_policy(self, record: PolicyRecord) -> None:
        """Put a policy in force. One of another space is void: it would stop every reader of the log for good."""
        self.counts["policy"] += 1
        if self.policy is not None and (record.initial or record.policy.space_id != self.policy.space_id):
            self.counts["policy_void"] += 1
            return
        if self.log is None:
            self.log = record.log
        rule = record.policy.rule
        if self._decider is not None and rule == replace(self._decider.rule, guards=rule.guards):
            self._decider.guard_by(rule.guards)
        else:
            self._decider = self._made(record.policy, self.rows(), self._watch)
        self.policy = record.policy

    @property
    def _watch(self) -> GuardTracker | None:
        return None if self._decider is None else self._decider.watch

    def _made(self, policy: Policy, rows: EntryRows | None, watch: GuardTracker | None) -> Decider:
        self._candidates = LocalCandidates(policy.rule, rows or EntryRows.none(), shards=self._shards)
        return Decider(
            policy.rule,
            policy.space_id,
            self._names,
            restored=rows,
            overrides=self._overrides,
            candidates=self._candidates,
            watch=watch,
        )
