"""A replica: applies the log to get the entries, the policy in force, and an outcome for every input record.

    outcome = replica.apply(sequence, record)

A pure function of the log, record by record. Two replicas that read the same records have the same state and
gave the same outcomes, in any process, from the beginning of the log or from the state of another replica. A
verdict therefore needs no agreement between processes beyond the order of the log.

Invariant: an input record (topic, partition, offset) has one outcome, however often it is in the log. Records
that were deleted before they were read (`ExpiredRecord`) have one outcome together.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pyroaring import BitMap64  # sets of offsets: runs and bitmaps, a few bytes for a million offsets in a row

from dedup_service.core.decision.candidates import CandidateSizes, LocalCandidates
from dedup_service.core.decision.decider import Decider, DeciderState, MutablePageNames
from dedup_service.core.decision.entry_rows import EntryPieces, EntryRows
from dedup_service.core.decision.entry_store import EntryStore, HeldEntries
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.host_text import HostText
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    UnreadableRecord,
    UnwrittenRecord,
)
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import CLAIM_REFUSED, Action, Verdict, VerdictKind, guard_counter, with_present_names

__all__ = ["OpenEntries", "Outcome", "Replica", "ReplicaState"]

OpenEntries = Callable[[str, Policy], tuple[EntryStore, EntryTables]]
"""Opens the settled entries of a log, with their tables: (identity of the log, policy in force).

A log has them from its first policy on.
"""

_MAX_REMOVALS = 1000
"""Removed pages that `take_removals` remembers."""

_BATCH = 512
"""Pages of a batch: comparing all their pairs takes about 1 ms."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an input record: a verdict with the action in force, or why the record was rejected.

    canonical_url, title: of a page; None and "" for a rejected record. original: sequence of the page that
    the verdict names, or None. end: offset after the last input record that it is about; None: of one record.
    """

    source: Source
    sequence: int
    canonical_url: str | None
    verdict: Verdict | None
    problem: str | None
    action: Action
    title: str = ""
    original: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The state of a replica at `sequence`, without its settled entries and page names.

    log: identity of the log. policy_sequence: of the record that put `policy` in force, -1 before any.
    seen: (topic, partition) → offsets that have an outcome, a serialised BitMap64. counts: pages by verdict, by
    guard and with a refused claim, other records by kind. corrections: in force, oldest first. decider: the
    state of the decider.
    """

    sequence: int = -1
    log: str | None = None
    policy: Policy | None = None
    policy_sequence: int = -1
    seen: Mapping[tuple[str, int], bytes] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    corrections: tuple[CorrectionRecord, ...] = ()
    decider: DeciderState = field(default_factory=DeciderState)


class Replica:
    """Applies records in the order of the log.

    names: of the kept pages. state: of another replica; None: before the first record. entries: opens the settled
    entries at that state, once there is a policy; None keeps entries in memory, where `rows` are the live ones to begin
    with, and `shards` the parts of each block index.
    """

    def __init__(
        self,
        names: MutablePageNames,
        *,
        shards: int = 1,
        rows: EntryPieces = (),
        state: ReplicaState | None = None,
        entries: OpenEntries | None = None,
    ) -> None:
        state = state or ReplicaState()
        self.sequence = state.sequence
        self.log = state.log
        self.policy = state.policy
        self.policy_sequence = state.policy_sequence
        self.counts: Counter[str] = Counter(with_present_names(state.counts))
        self._names = names
        self._shards = shards
        self._open_entries = entries
        self._overrides = Overrides(state.corrections)
        self._candidates: LocalCandidates | None = None
        self._removals: deque[tuple[str, str]] = deque(maxlen=_MAX_REMOVALS)
        self._seen = {source: BitMap64.deserialize(offsets) for source, offsets in state.seen.items()}
        self._decider = None if self.policy is None else self._new_decider(self.policy, rows, state.decider)

    def __len__(self) -> int:
        """Return the number of entries: kept pages that later pages are compared with."""
        return 0 if self._decider is None else len(self._decider)

    def apply(self, sequence: int, record: LogRecord) -> Outcome | None:  # noqa: C901 - one case for each kind
        """Apply the record at `sequence` and return the outcome of its input record.

        sequence: larger than any before; there may be gaps. Returns None for a record without an input
        record, and for an input record that already has its outcome. StateError for a page before any
        policy; then nothing changed.
        """
        outcome: Outcome | None = None
        match record:
            case PageRecord():
                outcome = self._page(sequence, record)
            case RejectedRecord():
                outcome = self._rejected(sequence, record)
            case ExpiredRecord():
                outcome = self._expired(sequence, record)
            case UnwrittenRecord():
                self._remove_unwritten(record)
            case UnreadableRecord():
                self.counts["unreadable"] += 1
            case TimeRecord(minute):
                if self._decider is not None:
                    self._decider.expiry.advance(sequence, minute)
            case RetractionRecord():
                self._retract(record.url, "retraction")
                self.counts["retraction"] += 1
            case CorrectionRecord():
                self._correct(record)
            case PolicyRecord():
                self._change_policy(sequence, record)
        self.sequence = sequence
        return outcome

    def apply_many(self, records: Sequence[tuple[int, LogRecord]]) -> list[Outcome | None]:
        """Apply records in order and return their outcomes: the same as one by one, in half the time."""
        outcomes: list[Outcome | None] = []
        for inputs, group in groupby(records, key=lambda row: isinstance(row[1], PageRecord | RejectedRecord)):
            run = list(group)
            for start in range(0, len(run), _BATCH):
                outcomes += self._apply_run(run[start : start + _BATCH], batch=inputs)
        return outcomes

    def held(self) -> HeldEntries:
        """Return an immutable view of the live entries, within milliseconds for any number of them."""
        return HeldEntries() if self._decider is None else self._decider.held()

    def host_text(self) -> HostText:
        """Return a copy of what is known of the hosts' own text; some milliseconds at most."""
        return HostText() if self._decider is None else self._decider.host_text.copy()

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None."""
        return None if self._decider is None else self._decider.sequence_of(canonical_url)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._decider is not None and self._decider.holds(sequence)

    @property
    def expired(self) -> dict[str, int]:
        """Entries that expired so far, by reason."""
        return {} if self._decider is None else {str(reason): n for reason, n in self._decider.expiry.expired.items()}

    @property
    def expired_up_to(self) -> int:
        """Sequence up to which no entry is live, because they expired; -1 if none did."""
        return -1 if self._decider is None else self._decider.expiry.up_to

    @property
    def corrections(self) -> tuple[CorrectionRecord, ...]:
        """The corrections in force, oldest first."""
        return self._overrides.records

    def rows(self) -> EntryRows:
        """Return the live entries, in order of sequence."""
        return EntryRows.none() if self._decider is None else self._decider.rows()

    def sizes(self) -> CandidateSizes | None:
        """Return the sizes of the indexes, None before there is a policy; takes about 1 ms."""
        return None if self._candidates is None else self._candidates.sizes()

    def memory(self) -> dict[str, int]:
        """Return the bytes of memory by structure, of those that are not in its store and tables."""
        return {} if self._decider is None else {"host_text": self._decider.host_text.size_bytes}

    def take_removals(self) -> list[tuple[str, str]]:
        """Return the entries removed since the last call, except by updates: (`retraction` …, URL).

        At most the last thousand; they are for observers.
        """
        removals = list(self._removals)
        self._removals.clear()
        return removals

    def state(self) -> ReplicaState:
        """Return the state without settled entries and names, for a snapshot."""
        return ReplicaState(
            sequence=self.sequence,
            log=self.log,
            policy=self.policy,
            policy_sequence=self.policy_sequence,
            seen={source: offsets.serialize() for source, offsets in self._seen.items()},
            counts=dict(self.counts),
            corrections=self._overrides.records,
            decider=DeciderState() if self._decider is None else self._decider.state(),
        )

    def _apply_run(self, run: Sequence[tuple[int, LogRecord]], *, batch: bool) -> list[Outcome | None]:
        if self._decider is None or not batch:
            return [self.apply(sequence, record) for sequence, record in run]
        with self._decider.batch(self._decided(run)):
            return [self.apply(sequence, record) for sequence, record in run]

    def _decided(self, run: Sequence[tuple[int, LogRecord]]) -> list[tuple[int, PreparedPage]]:
        """Return the pages of a run that are decided: those of this space that have no outcome yet."""
        decided, seen = [], set[Source]()
        for sequence, record in run:
            if not isinstance(record, PageRecord | RejectedRecord) or record.source in seen:
                continue
            seen.add(record.source)
            if record.source.offset in self._seen_of(record.source) or isinstance(record, RejectedRecord):
                continue
            if self.policy is not None and record.space_id == self.policy.space_id:
                decided.append((sequence, record.prepared))
        return decided

    def _page(self, sequence: int, record: PageRecord) -> Outcome | None:
        if self._decider is None or self.policy is None:
            raise StateError(
                f"the log has a page at {sequence} before any policy, so twinsieve did not begin it; "
                "delete the topics and create them again, or give the right --prefix"
            )
        if not self._first_time(record.source):
            return None
        original: int | None = None
        if record.space_id != self.policy.space_id:
            verdict = self._foreign(sequence, record, self.policy.space_id)
        else:
            decision = self._decider.decide(sequence, record.prepared)
            verdict, original = decision.verdict, decision.original
            if decision.kept:
                self._names.add(sequence, verdict.id, verdict.url)
        self.counts[verdict.kind.value] += 1
        if verdict.guard is not None:
            self.counts[guard_counter(verdict.guard)] += 1
        if verdict.claim_refused:
            self.counts[CLAIM_REFUSED] += 1
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
        return self._no_page(sequence, record.source, record.problem)

    def _expired(self, sequence: int, record: ExpiredRecord) -> Outcome | None:
        """Mark all records of the range as seen; the outcome is that of the first one that was not."""
        source = record.source
        offsets = self._seen_of(source)
        missing = BitMap64(range(source.offset, record.end)) - offsets
        if not missing:
            return None
        offsets |= missing
        self.counts["expired"] += len(missing)
        count = len(missing)
        problem = f"{count} records up to offset {record.end - 1} were deleted before they were read"
        first = Source(source.topic, source.partition, missing.min())
        end = record.end if count == record.end - first.offset else None  # others between have their own outcomes
        return replace(self._no_page(sequence, first, problem), end=end)

    def _no_page(self, sequence: int, source: Source, problem: str) -> Outcome:
        action = Action.FLAG if self.policy is None else self.policy.action
        return Outcome(source, sequence, None, None, problem, action)

    def _remove_unwritten(self, record: UnwrittenRecord) -> None:
        """Remove the entries of pages that were never passed on, those that are left of them."""
        self.counts["unwritten"] += len(record.sequences)
        for sequence in record.sequences:
            if self._decider is not None and self._decider.holds(sequence):
                self._removals.append(("unwritten", self._names.name(sequence)[1]))
                self._decider.retract(sequence)

    def _seen_of(self, source: Source) -> BitMap64:
        return self._seen.setdefault((source.topic, source.partition), BitMap64())

    def _first_time(self, source: Source) -> bool:
        """Mark an input record as seen; return False if the log had it before."""
        offsets = self._seen_of(source)
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

    def _retract(self, url: str, cause: str) -> None:
        """Remove the entry of the kept page of `url`, if there is one: the record may come twice."""
        visit = None if self._decider is None else self._decider.sequence_of(url)
        if self._decider is not None and visit is not None:
            self._decider.retract(visit)
            self._names.erase(visit)
            self._removals.append((cause, url))

    def _correct(self, record: CorrectionRecord) -> None:
        self._overrides.add(record)
        if record.duplicate:
            self._retract(record.url, "correction")
        self.counts["correction"] += 1

    def _change_policy(self, sequence: int, record: PolicyRecord) -> None:
        """Put a policy in force, unless it is void."""
        self.counts["policy"] += 1
        if record.is_void(self.policy, self.policy_sequence):
            self.counts["policy_void"] += 1
            return
        if self.log is None:
            self.log = record.log
        if self._decider is None:
            self._decider = self._new_decider(record.policy, (), DeciderState())
        self._decider.set_rule(record.policy.rule)
        self._decider.expiry.keep = record.policy.keep
        self.policy, self.policy_sequence = record.policy, sequence

    def _new_decider(self, policy: Policy, rows: EntryPieces, state: DeciderState) -> Decider:
        store, tables = None, None
        if self._open_entries is not None:
            store, tables = self._open_entries(self.log or "", policy)
            rows = [EntryRows.from_entries(state.young)] if state.young else []
        self._candidates = LocalCandidates(
            policy.rule,
            rows,
            store=store,
            tables=tables,
            layout=policy.layout,
            removed=state.removed,
            shards=self._shards,
        )
        return Decider(
            policy.rule,
            policy.space_id,
            self._names,
            state=state,
            overrides=self._overrides,
            candidates=self._candidates,
            keep=policy.keep,
        )
