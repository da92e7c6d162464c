"""A replica: applies the log to get the entries, the policy in force, and an outcome for every input record.

    outcome = replica.apply(sequence, record)

A pure function of the log, record by record. Two replicas that read the same records have the same state and
gave the same outcomes, in any process, from the beginning of the log or from the state of another replica. A
verdict therefore needs no agreement between processes beyond the order of the log.

Invariant: an input record (topic, partition, offset) has one outcome, however often it is in the log. Records
that were deleted before they were read (`ExpiredRecord`) have one outcome together.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.bases import BasedState, base_of
from dedup_service.core.decision.decider import (
    CandidateSizes,
    Decider,
    DeciderState,
    Decision,
    MutablePageNames,
    SettledElsewhere,
)
from dedup_service.core.decision.entry_store import EntryStore, HeldEntries
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.decision.seen_records import SeenRecords
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    BackfillRecord,
    CorrectionRecord,
    ExpiredRecord,
    LayoutRecord,
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
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.record_columns import REJECTED, LogPart, RecordColumns
from dedup_service.core.verdict import CLAIM_REFUSED, Action, Verdict, VerdictKind, guard_counter

DELETED_UNREAD = "were deleted before they were read"
"""How the problem of records that nobody has read ends."""

OpenEntries = Callable[[str, Policy], EntryStore]
"""Opens the settled entries of a log: (identity of the log, policy in force).

A log has them from its first policy on.
"""

OpenBases = Callable[[str, Policy], BasedState]
"""Returns what a log with bases begins with: (identity of the log, its first policy)."""

NewCandidates = Callable[[Policy, DeciderState], SettledElsewhere]
"""Makes the candidates of a log whose entries are elsewhere, as they are in a state of its decider."""

Wanted = Callable[[RecordColumns], Sequence[bool]]
"""Says of each input record whether its outcome is asked for."""

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
    seen: (topic, partition) → offsets that have an outcome, a packed `OffsetRuns`. counts: pages by verdict, by
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


def batches_of(records: RecordColumns) -> Iterator[RecordColumns]:
    """Yield the records of a part of the log as they are applied together."""
    for start in range(0, len(records), _BATCH):
        yield records[start : start + _BATCH]


def decided_pages(records: RecordColumns, others: Sequence[int]) -> tuple[RecordColumns, Sequence[int]]:
    """Return the pages among records that are decided, and their places. others: the places that are not, ascending."""
    if not others:
        return records, range(len(records))
    is_other = frozenset(others)
    decided = [place for place in range(len(records)) if place not in is_other]
    return records.take(decided), decided


def begun_with_bases(log: str, policy: Policy, bases: OpenBases | None) -> BasedState:
    """Return what a log begins with. policy: its first one; StateError if it has bases that are not there."""
    if not policy.bases:
        return BasedState()
    if bases is None:
        raise StateError(
            f"the log was begun with the bases {', '.join(base.name for base in policy.bases)}, without which its "
            "pages cannot be decided: give each of them, with --base NAME=FOLDER"
        )
    return bases(log, policy)


class Replica:
    """Applies records in the order of the log.

    names: of the kept pages. state: of another replica; None: before the first record. entries: opens the settled
    entries at that state, once there is a policy; None keeps entries in memory, where `rows` are the live ones to begin
    with. candidates: makes those of a log whose entries are elsewhere;
    then the rest is not used.
    """

    def __init__(
        self,
        names: MutablePageNames,
        *,
        rows: Iterable[Sequence[Entry]] = (),
        state: ReplicaState | None = None,
        entries: OpenEntries | None = None,
        candidates: NewCandidates | None = None,
        bases: OpenBases | None = None,
    ) -> None:
        state = state or ReplicaState()
        self.sequence = state.sequence
        self.log = state.log
        self.policy = state.policy
        self.policy_sequence = state.policy_sequence
        self.counts: Counter[str] = Counter(state.counts)
        self._names = names
        self._open_entries, self._elsewhere, self._open_bases = entries, candidates, bases
        self._overrides = Overrides(state.corrections)
        self._decisions: Generator[Decision, None, None] | None = None  # of the pages of a batch that come next
        self._removals: deque[tuple[str, str]] = deque(maxlen=_MAX_REMOVALS)
        self._seen = SeenRecords(state.seen)
        self._decider = None if self.policy is None else self._new_decider(self.policy, rows, state.decider)

    def __len__(self) -> int:
        """Return the number of entries: kept pages that later pages are compared with."""
        return 0 if self._decider is None else len(self._decider)

    def apply(self, sequence: int, record: LogRecord) -> Outcome | None:  # noqa: C901 - one case for each kind
        """Apply the record at `sequence` and return the outcome of its input record.

        sequence: larger than any before; there may be gaps. Returns None for a record without an input
        record, and for an input record that already has its outcome. StateError for a page before any
        policy, and for the first policy of a log whose bases are not there; then nothing changed.
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
                    self._decider.advance(sequence, minute)
            case RetractionRecord():
                self._retract(record.url, "retraction")
                self.counts["retraction"] += 1
            case CorrectionRecord():
                self._correct(record)
            case PolicyRecord():
                self._change_policy(sequence, record)
            case LayoutRecord():
                pass  # the policy behind it has it
            case BackfillRecord():
                self.counts["backfilled_files"] += 1
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

    def apply_parts(self, parts: Sequence[LogPart], wanted: Wanted | None = None) -> list[Outcome]:
        """Apply parts of the log in order and return their outcomes: as `apply_many`, and nothing is made of new pages.

        wanted: of which input records the outcome is asked for; None: of all.
        """
        outcomes: list[Outcome] = []
        for part in parts:
            if not isinstance(part, RecordColumns):
                outcome = self.apply(*part)
                outcomes += [] if outcome is None else [outcome]
            elif self._decider is None:
                outcomes += [outcome for row in part.numbered() if (outcome := self.apply(*row)) is not None]
            else:
                for records in batches_of(part):
                    outcomes += self._apply_columns(records, None if wanted is None else wanted(records))
        return outcomes

    def held(self) -> HeldEntries:
        """Return an immutable view of the live entries, within milliseconds for any number of them."""
        return HeldEntries() if self._decider is None else self._decider.held()

    def host_text(self) -> HostText:
        """Return a copy of what is known of the hosts' own text; some milliseconds at most."""
        return HostText() if self._decider is None else self._decider.host_text()

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None."""
        return None if self._decider is None else self._decider.sequence_of(canonical_url)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._decider is not None and self._decider.holds(sequence)

    @property
    def expired(self) -> dict[str, int]:
        """Entries that expired so far, by reason."""
        return {} if self._decider is None else {str(reason): n for reason, n in self._decider.expired.items()}

    @property
    def expired_up_to(self) -> int:
        """Sequence up to which no entry is live, because they expired; -1 if none did."""
        return -1 if self._decider is None else self._decider.expired_up_to

    @property
    def corrections(self) -> tuple[CorrectionRecord, ...]:
        """The corrections in force, oldest first."""
        return self._overrides.records

    def sizes(self) -> CandidateSizes | None:
        """Return the sizes of the indexes, None before there is a policy; takes about 1 ms."""
        return None if self._decider is None else self._decider.sizes()

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        return None if self._decider is None else self._decider.entry(sequence)

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
            seen=self._seen.state(),
            counts=dict(self.counts),
            corrections=self._overrides.records,
            decider=DeciderState() if self._decider is None else self._decider.state(),
        )

    def _apply_run(self, run: Sequence[tuple[int, LogRecord]], *, batch: bool) -> list[Outcome | None]:
        if self._decider is None or not batch:
            return [self.apply(sequence, record) for sequence, record in run]
        self._decisions = self._decider.decide_all(self._decided(run))
        try:
            return [self.apply(sequence, record) for sequence, record in run]
        finally:
            self._decisions.close()
            self._decisions = None

    def _decided(self, run: Sequence[tuple[int, LogRecord]]) -> list[tuple[int, PreparedPage]]:
        """Return the pages of a run that are decided: those of this space that have no outcome yet."""
        decided, seen = [], set[Source]()
        for sequence, record in run:
            if not isinstance(record, PageRecord | RejectedRecord) or record.source in seen:
                continue
            seen.add(record.source)
            if record.source in self._seen or isinstance(record, RejectedRecord):
                continue
            if self.policy is not None and record.space_id == self.policy.space_id:
                decided.append((sequence, record.prepared))
        return decided

    def _apply_columns(self, records: RecordColumns, wanted: Sequence[bool] | None) -> list[Outcome]:
        """Apply input records; return their outcomes, or those that are wanted."""
        assert self._decider is not None
        assert self.policy is not None
        is_repeated, not_decided = self._seen.add_new(records, self.policy.space_id)
        others = deque(not_decided)
        pages, decided = decided_pages(records, not_decided)
        outcomes: list[tuple[int, Outcome | None]] = []
        done = 0
        with closing(self._decider.decide_runs(pages)) as decisions:
            for decision in decisions:
                while others and others[0] < decided[done]:  # in their order, as one by one
                    outcomes.append(self._not_decided(records, others.popleft(), is_repeated))
                if isinstance(decision, Decision):
                    outcomes.append((decided[done], self._decided_page(records, decided[done], decision)))
                    done += 1
                else:
                    outcomes += self._new_pages(records, decided[done : done + decision], wanted)
                    done += decision
        outcomes += [self._not_decided(records, place, is_repeated) for place in others]
        self.sequence = int(records.sequences[-1])
        outcomes.sort(key=itemgetter(0))
        return [outcome for place, outcome in outcomes if outcome is not None and (wanted is None or wanted[place])]

    def _new_pages(
        self, records: RecordColumns, places: Sequence[int], wanted: Sequence[bool] | None
    ) -> list[tuple[int, Outcome]]:
        """Name and count unique pages; return the outcomes that are wanted, with their places."""
        assert self._decider is not None
        self.counts[VerdictKind.UNIQUE.value] += len(places)
        first, end = places[0], places[-1] + 1
        sequences = records.sequences[first:end].tolist()
        outcomes: list[tuple[int, Outcome]] = []
        for place in places:
            sequence, name, url = sequences[place - first], records.ids[place], records.urls[place]
            self._names.add(sequence, name, url)
            if wanted is None or wanted[place]:
                verdict = self._decider.unique_verdict(sequence, name, url)
                outcomes.append((place, self._outcome_at(records, place, verdict)))
        return outcomes

    def _decided_page(self, records: RecordColumns, place: int, decision: Decision) -> Outcome:
        """Name and count a page that was decided, and return its outcome."""
        verdict = self._with_base(decision)
        if decision.kept:
            self._names.add(verdict.sequence, verdict.id, verdict.url)
        self._count(verdict)
        return self._outcome_at(records, place, verdict, decision.original)

    def _not_decided(
        self, records: RecordColumns, place: int, is_repeated: Collection[int]
    ) -> tuple[int, Outcome | None]:
        """Return the place and outcome of an input record that is rejected, repeated or a page of another space."""
        sequence, reason = int(records.sequences[place]), records.reasons[place]
        if place in is_repeated:
            self.counts["repeated"] += 1
            return place, None
        if records.present[place] & REJECTED:
            self.counts["rejected"] += 1
            return place, self._no_page(sequence, records.source(place), reason or "")
        assert self.policy is not None
        page = records.prepared(place).page
        verdict = self._foreign(sequence, page, records.space_id, self.policy.space_id)
        self._count(verdict)
        return place, self._outcome_at(records, place, verdict)

    def _outcome_at(self, records: RecordColumns, place: int, verdict: Verdict, original: int | None = None) -> Outcome:
        source, url, title = records.source(place), records.canonical_urls[place], records.titles[place]
        return self._outcome(source, url, title, verdict, original)

    def _outcome(self, source: Source, url: str, title: str, verdict: Verdict, original: int | None) -> Outcome:
        assert self.policy is not None
        action = self.policy.action
        return Outcome(source, verdict.sequence, url, verdict, None, action, title=title, original=original)

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
            verdict = self._foreign(sequence, record.prepared.page, record.space_id, self.policy.space_id)
        else:
            decision = self._decision(sequence, record)
            verdict, original = self._with_base(decision), decision.original
            if decision.kept:
                self._names.add(sequence, verdict.id, verdict.url)
        self._count(verdict)
        page = record.prepared.page
        return self._outcome(record.source, page.canonical_url, page.title, verdict, original)

    def _with_base(self, decision: Decision) -> Verdict:
        """Return the verdict of a decision; it names the base that has the original."""
        base = None if self.policy is None else base_of(self.policy.bases, decision.original)
        return decision.verdict if base is None else replace(decision.verdict, duplicate_of_base=base.name)

    def _decision(self, sequence: int, record: PageRecord) -> Decision:
        assert self._decider is not None
        if self._decisions is None:
            return self._decider.decide(sequence, record.prepared)
        decision = next(self._decisions)
        if decision.verdict.sequence != sequence:
            raise RuntimeError(f"page {decision.verdict.sequence} was decided, {sequence} comes next")
        return decision

    def _rejected(self, sequence: int, record: RejectedRecord) -> Outcome | None:
        if not self._first_time(record.source):
            return None
        self.counts["rejected"] += 1
        return self._no_page(sequence, record.source, record.problem)

    def _expired(self, sequence: int, record: ExpiredRecord) -> Outcome | None:
        """Mark all records of the range as seen; the outcome is that of the first one that was not."""
        source = record.source
        missing = self._seen.add_range(source, record.end)
        if not missing:
            return None
        count = sum(map(len, missing))
        self.counts["expired"] += count
        problem = f"{count} records up to offset {record.end - 1} {DELETED_UNREAD}"
        first = Source(source.topic, source.partition, missing[0].start)
        end = record.end if count == record.end - first.offset else None  # others between have their own outcomes
        return replace(self._no_page(sequence, first, problem), end=end)

    def _no_page(self, sequence: int, source: Source, problem: str) -> Outcome:
        action = Action.FLAG if self.policy is None else self.policy.action
        return Outcome(source, sequence, None, None, problem, action)

    def _remove_unwritten(self, record: UnwrittenRecord) -> None:
        """Remove the entries of pages that were never passed on, or retracted in a base, those that are left."""
        for sequence in record.sequences:
            of_base = self.policy is not None and base_of(self.policy.bases, sequence) is not None
            is_held = self._decider is not None and self._decider.holds(sequence)
            cause = "retraction" if of_base else "unwritten"
            self.counts[cause] += not of_base or is_held  # each process says so of a base
            if self._decider is not None and is_held:
                self._removals.append((cause, self._names.name(sequence)[1]))
                self._decider.retract(sequence)

    def _first_time(self, source: Source) -> bool:
        """Mark an input record as seen; return False if the log had it before."""
        is_new = self._seen.add(source)
        if not is_new:
            self.counts["repeated"] += 1
        return is_new

    def _count(self, verdict: Verdict) -> None:
        self.counts[verdict.kind.value] += 1
        if verdict.guard is not None:
            self.counts[guard_counter(verdict.guard)] += 1
        if verdict.claim_refused:
            self.counts[CLAIM_REFUSED] += 1

    def _foreign(self, sequence: int, page: Page, space: str, own_space: str) -> Verdict:
        return Verdict(
            sequence=sequence,
            id=page.id,
            url=page.url,
            kind=VerdictKind.UNDECIDED,
            space=space,
            reason=f"made in space {space}, this log is of {own_space}",
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
        if self._decider is not None:
            self._decider.correct(record)
        if record.duplicate:
            self._retract(record.url, "correction")
        self.counts["correction"] += 1

    def _change_policy(self, sequence: int, record: PolicyRecord) -> None:
        """Put a policy in force, unless it is void."""
        self.counts["policy"] += 1
        if record.is_void(self.policy, self.policy_sequence):
            self.counts["policy_void"] += 1
            return
        log = record.log if self.log is None else self.log
        if self._decider is None:
            begun = begun_with_bases(log or "", record.policy, self._open_bases)
            self.log = log  # the entries are opened with it
            self._decider = self._new_decider(record.policy, (), begun.decider)
            for correction in begun.corrections:
                self._overrides.add(correction)
                self._decider.correct(correction)
        self.log = log
        self._decider.set_rule(record.policy.rule)
        self._decider.keep = record.policy.keep
        self.policy, self.policy_sequence = record.policy, sequence

    def _new_decider(self, policy: Policy, rows: Iterable[Sequence[Entry]], state: DeciderState) -> Decider:
        entries = None if self._open_entries is None else self._open_entries(self.log or "", policy)
        return Decider(
            policy.rule,
            policy.space_id,
            self._names,
            layout=policy.layout,
            restored=rows if entries is None else (),
            state=state,
            overrides=self._overrides,
            entries=entries,
            elsewhere=None if self._elsewhere is None else self._elsewhere(policy, state),
            keep=policy.keep,
        )
