"""A shard: holds the entries of its slots, answers for them, and learns what became of the pages from the outcomes.

    shard.begin(offset, parts)        # a message of the log
    while not shard.is_ready:         # its tables must be where that message needs them
        shard.learn(outcome)
    answer = shard.answer()

Before it answers, the tables have all that pages up to `window` before the last one of the message did, and nothing
else. So the answer is a function of the log and its outcomes, whatever else the shard has learned by then: two replicas
give the same bytes. A message has no more pages than the window, or the shard would wait for itself.

Pages without an outcome wait with their evidence; there are some thousands at most, since the resolver does not go on
without the shard, nor the shard without the resolver.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import MutablePageNames
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.entry_store import entries_at
from dedup_service.core.decision.expiry import MAX_BEFORE_PAGE
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.replica import OpenBases, OpenEntries, batches_of, begun_with_bases, decided_pages
from dedup_service.core.decision.seen_records import SeenRecords
from dedup_service.core.decision.table_answers import FoundHashes, ProbeBounds
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.record_columns import LogPart, PagesInColumns, RecordColumns
from dedup_service.core.shards.answers import OLDEST, BatchAnswer, MessageAnswer, RecordAnswer, equal_limit, probe_shard
from dedup_service.core.shards.outcomes import REMOVAL, MessageOutcome
from dedup_service.core.url import url_hash

OLDEST_EVERY = 8192
"""Pages after which a shard lists its earliest entries again, if any may expire."""


@dataclass(frozen=True, slots=True)
class ShardNumber:
    """Which shard it is: number `index` of `of`, counted from 1.

    >>> ShardNumber.parse("3/8")
    ShardNumber(index=3, of=8)
    """

    index: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.of:
            raise ConfigurationError(f"shard {self.index} of {self.of}: shards are counted from 1, as in 1/4 … 4/4")

    @classmethod
    def parse(cls, text: str) -> "ShardNumber":
        """Return what "I/S" says; ConfigurationError for anything else."""
        index, slash, of = text.partition("/")
        if not (slash and index.isdecimal() and of.isdecimal() and len(text) < 16):
            raise ConfigurationError(f"{text!r} is no shard: write its number and how many there are, as in 1/4")
        return cls(int(index), int(of))

    def check(self, slots: int) -> None:
        """Raise ConfigurationError unless slots can be divided among so many shards."""
        if self.of > slots or slots % self.of:
            numbers = [number for number in (1, 2, 4, 8, 16, 32, 64) if slots % number == 0]
            raise ConfigurationError(
                f"{self.of} shards cannot share the {slots} slots of the log: use {', '.join(map(str, numbers))}; "
                "for more, begin a log with `twinsieve topics create --slots`"
            )

    def owns(self, ordinals: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which pages belong to the shard: bool[n]."""
        mask: npt.NDArray[np.bool_] = ordinals.astype(np.int64) % self.of == self.index - 1
        return mask

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(slots=True, eq=False)
class UndecidedMessage:
    """A message whose pages do not all have their outcome in the tables.

    offset: of the message. first, count: of the pages that are decided in it. own: those of the shard; names: (id, URL)
    of each. outcome: if it was learned.
    """

    offset: int
    first: int
    count: int
    own: PageColumns
    names: Sequence[tuple[str, str]]
    outcome: MessageOutcome | None = None
    done: int = 0
    """How many own pages are in the tables, or were not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardState:
    """A shard after a message, without its settled entries and their names.

    offset: of that message, -1 before any. ordinal: pages decided up to it. undecided: the later messages that wait for
    their outcomes, and own pages with an outcome that is not due. taken_down: sequences of pages whose names are erased
    when they are removed. The rest is as in `ReplicaState`.
    """

    offset: int = -1
    log: str | None = None
    policy: Policy | None = None
    policy_sequence: int = -1
    seen: Mapping[tuple[str, int], bytes] = field(default_factory=dict)
    corrections: tuple[CorrectionRecord, ...] = ()
    ordinal: int = 0
    undecided: tuple[UndecidedMessage, ...] = ()
    lists_oldest: bool = False
    taken_down: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """A message that was begun. last: ordinal up to which the tables must be for it."""

    offset: int
    first: int
    batches: Sequence[PageColumns]
    names: Sequence[Sequence[tuple[str, str]]]
    record: LogRecord | None
    sequence: int
    last: int

    @property
    def count(self) -> int:
        return sum(map(len, self.batches))


class Shard:
    """Shard `number`. names: of its entries. entries: opens them once there is a policy; None keeps them in memory.

    state: to go on from. bases: what a log with bases begins with, whose settled entries `entries` opens; None refuses
    such a log.
    """

    def __init__(
        self,
        number: ShardNumber,
        names: MutablePageNames,
        *,
        entries: OpenEntries | None = None,
        state: ShardState | None = None,
        bases: OpenBases | None = None,
    ) -> None:
        state = state or ShardState()
        self.number = number
        self.offset, self.ordinal = state.offset, state.ordinal
        self.log, self.policy, self.policy_sequence = state.log, state.policy, state.policy_sequence
        self._names = names
        self._open_entries, self._open_bases = entries, bases
        self._seen = SeenRecords(state.seen)
        self._overrides = Overrides(state.corrections)
        self._undecided = deque(state.undecided)
        self._lists_oldest, self._taken_down = state.lists_oldest, set(state.taken_down)
        self._begun: _Begun | None = None
        self._entries: LocalCandidates | None = None
        if self.policy is not None:
            self._open(self.policy)

    def __len__(self) -> int:
        """Return the number of entries."""
        return 0 if self._entries is None else len(self._entries)

    @property
    def undecided_pages(self) -> int:
        """Pages of the shard that wait for their outcome, or to be settled."""
        return sum(len(message.own) - message.done for message in self._undecided)

    @property
    def undecided_bytes(self) -> int:
        """Bytes of the evidence, keys and rows of those pages."""
        return sum(message.own.rows.nbytes + 2 * message.own.data.nbytes for message in self._undecided)

    @property
    def entries(self) -> LocalCandidates | None:
        """The entries; None before there is a policy."""
        return self._entries

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has an entry here."""
        return self._held(sequence) is not None

    @property
    def first_sequence(self) -> int | None:
        """Sequence of the earliest settled entry, None if there is none."""
        if self._entries is None or not len(rows := self._entries.store.first()):
            return None
        return int(self._entries.store.rows(rows)["sequence"][0])

    @property
    def next_outcome(self) -> int:
        """Offset of the message whose outcome comes next."""
        for message in self._undecided:
            if message.outcome is None:
                return message.offset
        return self.offset + 1

    def begin(self, offset: int, parts: Sequence[LogPart]) -> None:
        """Begin a message of the log. parts: what it has; StateError for a page before any policy."""
        if self._begun is not None or offset <= self.offset:
            raise RuntimeError(f"message {offset} was begun after {self.offset}, which comes first")
        batches: list[PageColumns] = []
        names: list[list[tuple[str, str]]] = []
        record: LogRecord | None = None
        first, sequence = self.ordinal, sequence_at(offset)
        for part in parts:
            if isinstance(part, RecordColumns):
                for pages, ordinal in self._decided(part, first + sum(map(len, batches)), offset):
                    columns = PageColumns.of_pages(pages, ordinal)
                    own = [(pages.columns.ids[place], pages.columns.urls[place]) for place in range(len(pages))]
                    batches.append(columns)
                    names.append(own)
            elif isinstance(part[1], PageRecord | RejectedRecord):
                raise TypeError("input records come in columns")
            else:
                sequence, record = part
        count = sum(map(len, batches))
        window = 0 if self.policy is None else self.policy.layout.window
        if count > window > 0:
            raise StateError(f"message {offset} of the log has {count} pages, more than the window of {window}")
        last = first + count - 1 - window if count else -1
        self._begun = _Begun(offset, first, batches, names, record, sequence, last)

    def _decided(self, part: RecordColumns, first: int, offset: int) -> Iterator[tuple[PagesInColumns, int]]:
        """Yield the pages that are decided together, with the ordinal of the first one."""
        if self.policy is None:
            raise StateError(f"the log has a page at {offset} before any policy, so twinsieve did not begin it")
        window = self.policy.layout.window
        for records in batches_of(part):
            _, others = self._seen.add_new(records, self.policy.space_id)
            pages, _ = decided_pages(records, others)
            for start in range(0, len(pages), window):
                batch = pages[start : start + window]
                yield batch, first
                first += len(batch)

    @property
    def is_ready(self) -> bool:
        """Whether the outcomes that the message needs are known."""
        begun = self._begun
        if begun is None or begun.last < 0:
            return begun is not None
        for message in self._undecided:
            if message.outcome is None:
                first_unknown = message.first if message.count else message.first - 1
                return first_unknown > begun.last
        return True

    def learn(self, outcome: MessageOutcome) -> bool:
        """Learn the outcome of a message; return False, without an effect, if it is known.

        StateError if it is not of the message that comes next, or of other pages.
        """
        if outcome.offset < self.next_outcome:
            return False
        message = next((one for one in self._undecided if one.outcome is None), None)
        if message is None or message.offset != outcome.offset:
            where = "no message" if message is None else f"message {message.offset}"
            raise StateError(
                f"an outcome is of message {outcome.offset} of the log, and {where} waits for one: outcomes are "
                "missing, or are of another log"
            )
        if (message.first, message.count) != (outcome.first, len(outcome.kept)):
            raise StateError(
                f"message {outcome.offset} has {message.count} pages from ordinal {message.first} on, its outcome is "
                f"of {len(outcome.kept)} from {outcome.first} on: shard and resolver do not read the same log"
            )
        message.outcome = outcome
        return True

    def answer(self, *, silent: bool = False) -> MessageAnswer:
        """Return what the shard says of the message that was begun, which is ready; it is the latest one then.

        silent: the message was answered before, so that only its effects are needed, and nothing is found for it.
        """
        begun = self._begun
        if begun is None or not self.is_ready:
            raise RuntimeError("the message is not ready")
        self._follow(begun.last)
        first, answers = begun.first, []
        for columns in begun.batches:
            if silent and self._entries is not None:
                self._entries.settle(first + len(columns) - 1, PageColumns.of_entries([]))
            else:
                answers.append(self._answer_batch(columns, first))
            first += len(columns)
        record = None if begun.record is None else self._apply(begun.sequence, begun.record)
        begun = replace(begun, first=max(begun.first, self.ordinal))  # with its first policy the log goes on from bases
        oldest, is_all = np.empty(0, OLDEST), True
        if begun.count and self.policy is not None and self.policy.keep:
            crosses = begun.first // OLDEST_EVERY != (begun.first + begun.count) // OLDEST_EVERY
            if crosses or self._lists_oldest:
                oldest, is_all = self._oldest(begun.count)
                self._lists_oldest = False
            else:
                is_all = False
        self._remember(begun)
        self._begun = None
        self.offset, self.ordinal = begun.offset, begun.first + begun.count
        return MessageAnswer(begun.offset, begun.first, answers, record, oldest, is_all)

    def state(self) -> ShardState:
        """Return the state after the latest message that was answered."""
        if self._begun is not None:
            raise RuntimeError("a message is begun and not answered")
        return ShardState(
            offset=self.offset,
            log=self.log,
            policy=self.policy,
            policy_sequence=self.policy_sequence,
            seen=self._seen.state(),
            corrections=self._overrides.records,
            ordinal=self.ordinal,
            undecided=tuple(replace(message) for message in self._undecided),
            lists_oldest=self._lists_oldest,
            taken_down=frozenset(self._taken_down),
        )

    def _open(self, policy: Policy) -> None:
        self.number.check(policy.layout.slots)
        store, tables = (None, None) if self._open_entries is None else self._open_entries(self.log or "", policy)
        self._entries = LocalCandidates(policy.rule, store=store, tables=tables, layout=policy.layout)

    def _go_on_from(self, begun: BasedState) -> None:
        """Let what the bases had in their windows wait like pages of a message whose outcome is known."""
        state = begun.decider
        self.ordinal = state.ordinal
        for correction in begun.corrections:
            self._overrides.add(correction)
        gone = [removed.entry for removed in state.removed]
        waiting = sorted([*state.young, *(entry for entry in gone if not entry.settled)], key=lambda one: one.ordinal)
        if not waiting and not gone:
            return
        first = min([entry.ordinal for entry in waiting], default=state.ordinal)
        kept = np.zeros(state.ordinal - first, np.bool_)
        kept[[entry.ordinal - first for entry in waiting]] = True
        removals = [(removed.ordinal, removed.entry.sequence, removed.entry.ordinal) for removed in state.removed]
        outcome = MessageOutcome(-1, first, kept, np.array(removals, REMOVAL))
        columns = PageColumns.of_entries(waiting)
        mask = self.number.owns(columns.rows["ordinal"])
        own = [entry for entry, mine in zip(waiting, mask.tolist(), strict=True) if mine]
        names = [self._names.name(entry.sequence) for entry in own]
        self._undecided.append(UndecidedMessage(-1, first, len(kept), PageColumns.of_entries(own), names, outcome))

    def _remember(self, begun: _Begun) -> None:
        """Let the pages of the shard wait for their outcome."""
        owned = [self.number.owns(columns.rows["ordinal"]) for columns in begun.batches]
        own = [columns.where(mask) for columns, mask in zip(begun.batches, owned, strict=True)]
        names = [
            name
            for of_batch, mask in zip(begun.names, owned, strict=True)
            for name, mine in zip(of_batch, mask.tolist(), strict=True)
            if mine
        ]
        if self.policy is None:
            return
        self._undecided.append(UndecidedMessage(begun.offset, begun.first, begun.count, _joined(own), names))

    def _follow(self, last: int) -> None:
        """Do what pages up to the ordinal `last` did: keep entries, and remove some."""
        if self._entries is None:
            return
        removed: list[tuple[int, int, int]] = []
        while self._undecided and (message := self._undecided[0]).outcome is not None:
            outcome = message.outcome
            end = int(message.own.rows["ordinal"].searchsorted(last, side="right"))
            self._keep(message, outcome, end)
            due = outcome.removed["after"] <= last
            removed += outcome.removed[due].tolist()
            if message.first + message.count - 1 > last or not due.all():
                message.outcome = replace(outcome, removed=outcome.removed[~due])
                break
            self._undecided.popleft()
        for after, sequence, ordinal in removed:
            self._remove(after, sequence, ordinal)
        if not self._undecided:
            self._taken_down.clear()

    def _keep(self, message: UndecidedMessage, outcome: MessageOutcome, end: int) -> None:
        """Keep the own pages of a message up to number `end` that are kept."""
        assert self._entries is not None
        mask = np.zeros(len(message.own), np.bool_)
        mask[message.done : end] = True
        mask &= outcome.kept[message.own.rows["ordinal"].astype(np.int64) - message.first]
        message.done = max(message.done, end)
        if not mask.any():
            return
        pages = message.own.where(mask)
        self._entries.keep(pages)
        for place, sequence in zip(np.flatnonzero(mask).tolist(), pages.rows["sequence"].tolist(), strict=True):
            self._names.add(sequence, *message.names[place])

    def _remove(self, after: int, sequence: int, ordinal: int) -> None:
        """Remove an entry, if it is of this shard."""
        assert self._entries is not None
        if ordinal % self.number.of != self.number.index - 1:
            return
        entry = self._entries.get(sequence)
        if entry is None:
            raise StateError(
                f"the resolver has removed the entry at {sequence}, which shard {self.number} does not have: their "
                "states are not of the same log"
            )
        self._entries.remove(entry, after)
        if sequence in self._taken_down:
            self._taken_down.discard(sequence)
            self._names.erase(sequence)

    def _answer_batch(self, pages: PageColumns, first: int) -> BatchAnswer:
        entries, policy = self._entries, self.policy
        assert entries is not None
        assert policy is not None
        cells = entries.settle(first, pages)
        bounds = ProbeBounds.of(policy.rule)
        answer = probe_shard(pages, self._targets(pages), bounds, entries, cells, equal_limit(policy.layout.window))
        return replace(answer, names=self._names_of(answer.entries))

    def _targets(self, pages: PageColumns) -> FoundHashes:
        """Return the rows of the pages that corrections call the originals of pages."""
        values = np.zeros(len(pages), np.uint64)
        rows: dict[int, Sequence[int]] = {}
        if self._overrides.any_duplicates and self._entries is not None:
            for page, url in enumerate(pages.rows["url_hash"].tolist()):
                target = self._overrides.duplicate_of(url)
                if target is not None:
                    values[page] = target
                    if found := self._entries.tables.urls.rows(target):
                        rows[page] = found
        return FoundHashes(values, None, rows)

    def _names_of(self, entries: EntryRows) -> list[tuple[str, str]]:
        return [self._names.name(sequence) for sequence in entries.rows["sequence"].tolist()]

    def _apply(self, sequence: int, record: LogRecord) -> RecordAnswer | None:
        """Apply a record that is no page; return the entries that it speaks of, None if it can speak of none."""
        found: list[Entry] = []
        match record:
            case PolicyRecord():
                self._change_policy(sequence, record)
                return None
            case ExpiredRecord():
                self._seen.add_range(record.source, record.end)
                return None
            case RetractionRecord(url, _):
                found = self._taken_down_at(url)
            case CorrectionRecord():
                self._overrides.add(record)
                found = self._taken_down_at(record.url) if record.duplicate else []
            case UnwrittenRecord():
                held = [self._held(at) for at in record.sequences]
                found = sorted((entry for entry in held if entry is not None), key=lambda entry: entry.sequence)
            case _:
                return None
        rows = EntryRows.from_entries([replace(entry, keys=b"") for entry in found])
        return RecordAnswer(rows, self._names_of(rows))

    def _taken_down_at(self, url: str) -> list[Entry]:
        """Return the entries of a URL, one of which is removed with its name."""
        found, value = self._at_url(url), np.uint64(url_hash(url))
        waiting = [message.own.rows for message in self._undecided]
        self._taken_down.update(entry.sequence for entry in found)
        self._taken_down.update(
            sequence for rows in waiting for sequence in rows["sequence"][rows["url_hash"] == value].tolist()
        )
        return found

    def _at_url(self, url: str) -> list[Entry]:
        if self._entries is None:
            return []
        store, value = self._entries.store, url_hash(url)
        rows = np.array(self._entries.tables.urls.rows(value), np.int64)
        rows = rows[store.live(rows)] if len(rows) else rows
        if not len(rows):
            return []
        equal = rows[store.rows(rows)["url_hash"] == np.uint64(value)]
        return entries_at(store, equal)

    def _held(self, sequence: int) -> Entry | None:
        return None if self._entries is None else self._entries.get(sequence)

    def _change_policy(self, sequence: int, record: PolicyRecord) -> None:
        if record.is_void(self.policy, self.policy_sequence):
            return
        if self.log is None:
            self.log = record.log
        self._lists_oldest = bool(record.policy.keep)
        if self._entries is None:
            begun = begun_with_bases(self.log or "", record.policy, self._open_bases)
            self._open(record.policy)
            self._go_on_from(begun)
        else:
            self._entries.use(record.policy.rule)
        self.policy, self.policy_sequence = record.policy, sequence

    def _oldest(self, count: int) -> tuple[npt.NDArray[Any], bool]:
        """Return the earliest entries, as many as may expire before the next list, and whether they are all."""
        assert self._entries is not None
        assert self.policy is not None
        wanted = (MAX_BEFORE_PAGE + 2) * (self.policy.layout.window + count + OLDEST_EVERY + self.policy.layout.window)
        store = self._entries.store
        rows = store.first(-1, wanted)
        oldest = np.empty(len(rows), OLDEST)
        if len(rows):
            records = store.rows(rows)
            oldest["sequence"], oldest["ordinal"] = records["sequence"], records["ordinal"]
        return oldest, len(rows) < wanted


_NO_PAGES = PageColumns.of_entries([])
"""Of all messages without own pages: of an operator's records there may be a million that wait for their outcome."""


def _joined(columns: Sequence[PageColumns]) -> PageColumns:
    """Return the pages of several batches together."""
    if not any(map(len, columns)):
        return _NO_PAGES
    if len(columns) == 1:
        return columns[0]
    rows = [part.rows for part in columns]
    packed = [packed for part in columns for packed in part.packed]
    keys = [keys for part in columns for keys in part.keys]
    return PageColumns.of_rows(np.concatenate(rows), packed, keys)
