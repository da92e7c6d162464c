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

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dedup_service import _native
from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.decider import CandidateSizes, MutablePageNames, native_pages
from dedup_service.core.decision.entry_store import EntryStore
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.decision.replica import OpenBases, OpenEntries, batches_of, begun_with_bases, decided_pages
from dedup_service.core.decision.seen_records import SeenRecords
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS
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
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.outcomes import EntryRemoval, MessageOutcome
from dedup_service.core.url import url_hash

OLDEST_EVERY = 8192
"""Pages after which a shard lists its earliest entries again, if any may expire."""

MAX_EXPIRING = 10
"""Entries that may expire with one page (`native/src/expiry.rs`), and one more."""

_ROW_BYTES = 64


_Told = tuple[bytes, list[int]]
"""What a shard says, and the sequences of the entries that it names."""


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

    def owns(self, ordinal: int) -> bool:
        """Return whether a page belongs to the shard."""
        return ordinal % self.of == self.index - 1

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
    own: Sequence[_native.Entry]
    names: Sequence[tuple[str, str]]
    outcome: MessageOutcome | None = None
    done: int = 0
    """How many own pages are in the tables, or were not kept."""


def open_shard(policy: Policy, entries: EntryStore | None) -> _native.ShardEntries:
    """Return the native entries of a shard, with those of a store, which is opened for it; None: without any."""
    return _native.ShardEntries(
        _native.Rule(policy.rule),
        window=policy.layout.window,
        slots=policy.layout.slots,
        levels=LEVELS,
        store=None if entries is None else entries.pages,
        tables=None if entries is None else entries.tables,
    )


def shard_sizes(entries: _native.ShardEntries, waiting: Iterable[UndecidedMessage]) -> CandidateSizes:
    """Return the sizes of native entries, with the memory of the pages that wait."""
    sizes = CandidateSizes.of(entries.sizes())
    undecided = sum(_ROW_BYTES + len(page.evidence) + len(page.keys) for message in waiting for page in message.own)
    return replace(sizes, memory={**sizes.memory, "undecided": undecided})


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
class _Batch:
    """Pages that are announced together. first: ordinal of the first one; urls: canonical, of each."""

    first: int
    pages: list[_native.Page]
    urls: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """A message that was begun. message: as it will wait for its outcome. last: ordinal up to which tables must be."""

    message: UndecidedMessage
    batches: Sequence[_Batch]
    record: LogRecord | None
    sequence: int
    last: int


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
        self._entries: _native.ShardEntries | None = None
        if self.policy is not None:
            self._open(self.policy)

    def __len__(self) -> int:
        """Return the number of entries."""
        return 0 if self._entries is None else len(self._entries)

    @property
    def undecided_pages(self) -> int:
        """Pages of the shard that wait for their outcome, or to be settled."""
        return sum(len(message.own) - message.done for message in self._undecided)

    def sizes(self) -> CandidateSizes | None:
        """Return the sizes of tables and waiting pages; None before there is a policy."""
        return None if self._entries is None else shard_sizes(self._entries, self._undecided)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has an entry here."""
        return self._entries is not None and self._entries.holds(sequence)

    @property
    def first_sequence(self) -> int | None:
        """Sequence of the earliest settled entry, None if there is none."""
        return None if self._entries is None else self._entries.first()

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
        batches: list[_Batch] = []
        own: list[_native.Entry] = []
        names: list[tuple[str, str]] = []
        record: LogRecord | None = None
        first = end = self.ordinal
        sequence = sequence_at(offset)
        for part in parts:
            if isinstance(part, RecordColumns):
                for columns in self._decided(part, offset):
                    batch = _Batch(end, native_pages(columns), columns.canonical_urls)
                    batches.append(batch)
                    entries = _native.pages_of_shard(batch.pages, end, self.number.index, self.number.of)
                    own += entries
                    names += [
                        (columns.ids[entry.ordinal - end], columns.urls[entry.ordinal - end]) for entry in entries
                    ]
                    end += len(columns)
            elif isinstance(part[1], PageRecord | RejectedRecord):
                raise TypeError("input records come in columns")
            else:
                sequence, record = part
        window = 0 if self.policy is None else self.policy.layout.window
        if end - first > window > 0:
            raise StateError(f"message {offset} of the log has {end - first} pages, more than the window of {window}")
        last = end - 1 - window if end > first else -1
        message = UndecidedMessage(offset, first, end - first, own, names)
        self._begun = _Begun(message, batches, record, sequence, last)

    def _decided(self, part: RecordColumns, offset: int) -> Iterator[RecordColumns]:
        """Yield the pages that are announced together."""
        if self.policy is None:
            raise StateError(f"the log has a page at {offset} before any policy, so twinsieve did not begin it")
        for records in batches_of(part):
            _, others = self._seen.add_new(records, self.policy.space_id)
            pages, _ = decided_pages(records, others)
            if len(pages):
                yield pages

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
        message, told = begun.message, list[_Told]()
        for batch in begun.batches:
            told += self._answer_batch(batch, silent=silent)
        of_record = None if begun.record is None else self._apply(begun.sequence, begun.record)
        message.first = max(message.first, self.ordinal)  # with its first policy the log goes on from bases
        oldest, is_all = b"", True
        if message.count and self.policy is not None and self.policy.keep:
            crosses = message.first // OLDEST_EVERY != (message.first + message.count) // OLDEST_EVERY
            is_all = False
            if crosses or self._lists_oldest:
                oldest, is_all = self._oldest(message.count)
                self._lists_oldest = False
        if self.policy is not None:
            self._undecided.append(message)
        self._begun = None
        self.offset, self.ordinal = message.offset, message.first + message.count
        return MessageAnswer(
            message.offset,
            message.first,
            tuple(value for value, _ in told),
            None if of_record is None else of_record[0],
            oldest,
            is_all,
            self._names_of(told if of_record is None else [*told, of_record]),
        )

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
        entries = None if self._open_entries is None else self._open_entries(self.log or "", policy)
        self._entries = open_shard(policy, entries)

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
        kept = bytearray(state.ordinal - first)
        for entry in waiting:
            kept[entry.ordinal - first] = 1
        removals = tuple(EntryRemoval(one.ordinal, one.entry.sequence, one.entry.ordinal) for one in state.removed)
        own = [entry for entry in waiting if self.number.owns(entry.ordinal)]
        message = UndecidedMessage(-1, first, len(kept), own, [self._names.name(entry.sequence) for entry in own])
        message.outcome = MessageOutcome(-1, first, bytes(kept), removals)
        self._undecided.append(message)

    def _follow(self, last: int) -> None:
        """Do what pages up to the ordinal `last` did: keep entries, and remove some."""
        if self._entries is None:
            return
        removed: list[EntryRemoval] = []
        while self._undecided and (message := self._undecided[0]).outcome is not None:
            outcome = message.outcome
            self._keep(message, outcome, last)
            removed += [removal for removal in outcome.removed if removal.after <= last]
            later = tuple(removal for removal in outcome.removed if removal.after > last)
            if later or message.first + message.count - 1 > last:
                message.outcome = replace(outcome, removed=later)
                break
            self._undecided.popleft()
        for removal in removed:
            self._remove(self._entries, removal)
        if not self._undecided:
            self._taken_down.clear()

    def _keep(self, message: UndecidedMessage, outcome: MessageOutcome, last: int) -> None:
        """Keep the own pages of a message up to the ordinal `last` that are kept."""
        assert self._entries is not None
        end = max(message.done, bisect_right(message.own, last, key=lambda entry: entry.ordinal))
        due = range(message.done, end)
        kept = [place for place in due if outcome.kept[message.own[place].ordinal - message.first]]
        message.done = end
        self._entries.keep([message.own[place] for place in kept])
        for place in kept:
            self._names.add(message.own[place].sequence, *message.names[place])

    def _remove(self, entries: _native.ShardEntries, removal: EntryRemoval) -> None:
        """Remove an entry, if it is of this shard."""
        sequence = removal.sequence
        if not self.number.owns(removal.ordinal):
            return
        try:
            entries.remove(sequence, removal.after)
        except KeyError:
            if self.policy is not None and sequence <= self.policy.based_on:
                return  # its base had retracted it before this shard began
            raise StateError(
                f"the resolver has removed the entry at {sequence}, which shard {self.number} does not have: their "
                "states are not of the same log"
            ) from None
        if sequence in self._taken_down:
            self._taken_down.discard(sequence)
            self._names.erase(sequence)

    def _answer_batch(self, batch: _Batch, *, silent: bool) -> list[_Told]:
        assert self._entries is not None
        if silent:
            self._entries.settle(batch.first + len(batch.pages) - 1)
            return []
        targets: list[int | None] = []
        if self._overrides.any_duplicates:
            targets = [self._overrides.duplicate_of(url_hash(url)) for url in batch.urls]
        return self._entries.answer(batch.first, batch.pages, targets)

    def _names_of(self, told: Iterable[_Told]) -> dict[int, tuple[str, str]]:
        sequences = sorted({sequence for _, named in told for sequence in named})
        return {sequence: self._names.name(sequence) for sequence in sequences}

    def _apply(self, sequence: int, record: LogRecord) -> _Told | None:
        """Apply a record that is no page; return the entries that it speaks of, None if it can speak of none."""
        match record:
            case PolicyRecord():
                self._change_policy(sequence, record)
            case ExpiredRecord():
                self._seen.add_range(record.source, record.end)
            case RetractionRecord(url, _):
                return self._taken_down_at(url)
            case CorrectionRecord():
                self._overrides.add(record)
                if record.duplicate:
                    return self._taken_down_at(record.url)
            case UnwrittenRecord() if self._entries is not None:
                return self._entries.at(list(record.sequences))
        return None

    def _taken_down_at(self, url: str) -> _Told | None:
        """Return the entries of a URL, one of which is removed with its name."""
        if self._entries is None:
            return None
        value = url_hash(url)
        told = self._entries.at_url(value)
        self._taken_down.update(told[1])
        waiting = (entry for message in self._undecided for entry in message.own)
        self._taken_down.update(entry.sequence for entry in waiting if entry.url_hash == value)
        return told

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
            self._entries.set_rule(_native.Rule(record.policy.rule))
        self.policy, self.policy_sequence = record.policy, sequence

    def _oldest(self, count: int) -> tuple[bytes, bool]:
        """Return the earliest entries, as many as may expire before the next list, and whether they are all."""
        assert self._entries is not None
        assert self.policy is not None
        return self._entries.oldest(MAX_EXPIRING * (2 * self.policy.layout.window + count + OLDEST_EVERY))
