"""The candidates of a resolver: the window, which it has itself, and what all shards answer of settled entries.

    candidates.answer(answers)          # of all shards, for one message of the log
    ...                                 # the replica applies the message
    outcome = candidates.take_outcome(offset)

An entry settles here when it settles in its shard: from then on the shard answers for it. Of an entry that is removed
after that, the sequence is remembered until its shard knows. Rows are named by the sequences of their entries.

Invariant: what is found for a page is what `LocalCandidates` with all entries would find.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.batch_probe import BatchProbe
from dedup_service.core.decision.candidates import OLDEST_AHEAD, Candidates, RemovedEntry
from dedup_service.core.decision.decider import DeciderState, MutablePageNames
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_store import HeldEntries, HeldValues
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.page_runs import PageRun, RunRequest
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import Policy
from dedup_service.core.shards.answers import OLDEST, BatchAnswer, MessageAnswer, merged, targets_of
from dedup_service.core.shards.outcomes import REMOVAL, MessageOutcome

_OLDEST_LOADED = 512
"""Entries that may expire next which are taken from a list at once."""


class AnswersDifferError(StateError):
    """Answers to one message are of different logs, or of shards in different states."""


class _State(msgspec.Struct, tag_field="of", tag="resolver"):
    """What a snapshot has beside window and removed entries; the tag tells it from the state of a shard.

    shards: how many have answered. settled_to: ordinal up to which entries are settled. live: entries. expires: whether
    entries may expire. oldest: OLDEST[n] as bytes; bound and listed_to: see `_Oldest`.
    """

    shards: int = 0
    settled_to: int = -1
    live: int = 0
    expires: bool = False
    oldest: bytes = b""
    bound: int = -1
    listed_to: int = -1


class ShardCandidates(Candidates):
    """Candidates of a policy's log, with the state of its decider. shards: how many there are."""

    def __init__(self, policy: Policy, state: DeciderState, shards: int) -> None:
        super().__init__(policy.rule, policy.layout)
        self._shards = shards
        self._gone: dict[int, tuple[int, int]] = {}
        self._unsettled_gone: dict[int, RemovedEntry] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._batches: deque[Sequence[BatchAnswer]] = deque()
        self._record: list[Entry] = []
        self._present: tuple[PageColumns, Sequence[BatchAnswer]] | None = None
        self._ordinal = state.ordinal - 1
        self._kept: list[int] = []
        self._removed: list[tuple[int, int, int]] = []
        self._message_first = state.ordinal
        begun = _State(live=sum(base.entries for base in policy.bases))
        own = msgspec.msgpack.decode(state.candidates, type=_State) if state.candidates else begun
        self._settled_to, self._live = own.settled_to, own.live
        self._oldest = _Oldest(np.frombuffer(own.oldest, OLDEST), own.bound, own.listed_to)
        self._expires = own.expires
        self._restore(state)

    def __len__(self) -> int:
        return self._live

    def answer(self, answers: Sequence[MessageAnswer]) -> None:
        """Take the answers of all shards to the message that is applied next.

        AnswersDifferError if they are not of the same message and pages.
        """
        heads = {(answer.offset, answer.first, len(answer.batches), answer.record is None) for answer in answers}
        if len(answers) != self._shards or len(heads) != 1:
            raise AnswersDifferError(
                f"{len(answers)} of {self._shards} shards have answered to messages and pages {sorted(heads)}: all of "
                "them have to answer to the same"
            )
        self._batches = deque(zip(*(answer.batches for answer in answers), strict=True))
        self._names.clear()
        self._record = []
        for answer in answers:
            for part in (*answer.batches, *(() if answer.record is None else (answer.record,))):
                self._names.update(zip(part.entries.rows["sequence"].tolist(), part.names, strict=True))
            if answer.record is not None:
                self._record += [_named(entry) for entry in answer.record.entries.entries()]
        self._record.sort(key=lambda entry: entry.sequence)
        self._message_first = self._ordinal + 1
        if self._batches:
            self._expires = any(not answer.is_all or len(answer.oldest) for answer in answers)
            if not self._expires:  # what was listed is not needed, and would grow
                self._oldest = _Oldest(np.empty(0, OLDEST), -1, -1)
        if any(len(answer.oldest) for answer in answers):
            pages = sum(len(batch[0].looked_at) for batch in self._batches)
            gone = self._gone.keys() | self._unsettled_gone.keys()
            self._oldest.replace(answers, gone, answers[0].first + pages - 1 - self._layout.window)

    def name(self, sequence: int) -> tuple[str, str] | None:
        """Return (id, URL) of an entry that the present answers have, or None."""
        return self._names.get(sequence)

    @property
    def first_young(self) -> int | None:
        """Sequence of the earliest entry of the window that is not settled, None if there is none."""
        earliest = self._window.earliest()
        return None if earliest is None else earliest.sequence

    def take_outcome(self, offset: int) -> MessageOutcome:
        """Return what the message at `offset`, which was applied, has done to the entries."""
        if self._batches:
            raise AnswersDifferError(
                f"message {offset} has fewer pages than the shards have answered for: they do not read the same log"
            )
        first = self._message_first
        kept = np.zeros(self._ordinal + 1 - first, np.bool_)
        kept[np.array(self._kept, np.int64) - first] = True
        removed = np.array(self._removed, np.int64).reshape(-1, 3)
        rows = np.empty(len(removed), REMOVAL)
        rows["after"], rows["sequence"], rows["ordinal"] = removed.T
        self._kept, self._removed = [], []
        self._message_first = self._ordinal + 1
        return MessageOutcome(offset, first, kept, rows)

    def announce(self, pages: PageColumns, *, judged: bool = True) -> None:
        """Announce the pages that are decided next; they are always judged."""
        if not judged:
            raise RuntimeError("a resolver decides every page")
        self.finish()
        self._announced = pages

    def run_on(self, request: RunRequest) -> PageRun:
        """Decide the pages behind the present one as far as that depends on their candidates alone."""
        first = self._ordinal + 1
        run = super().run_on(request)
        if run.pages:
            self._kept += (first + np.flatnonzero(run.kept)).tolist()
            self._live += int(np.count_nonzero(run.kept))
        return run

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, if the window or the answers to a record have it, or None."""
        young = self._window.get(sequence)
        if young is not None:
            return young
        if sequence in self._gone:
            return None
        return next((entry for entry in self._record if entry.sequence == sequence), None)

    def first(self) -> Entry | None:
        """Return the earliest live entry, None if there is none; of a settled one, no more than its place."""
        oldest = self._oldest.first()
        if oldest is None:
            return self._window.earliest() if self._oldest.is_all else None
        sequence, ordinal = oldest
        return Entry(sequence, None, None, None, 0, indexed=False, ordinal=ordinal, settled=True, row=sequence)

    def add(self) -> None:
        """Add the entry of the page: it is found from now on."""
        super().add()
        self._kept.append(self._ordinal)
        self._live += 1

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove a live entry, as an effect of the page with this ordinal or of a record after it."""
        self._removed.append((ordinal, entry.sequence, entry.ordinal))
        self._live -= 1
        self._oldest.remove(entry.sequence)
        young = self._window.get(entry.sequence)
        if young is not None:
            self._window.remove(entry.sequence)
            self._unsettled_gone[entry.sequence] = RemovedEntry(ordinal, young.without_evidence())
            return
        self._gone[entry.sequence] = ordinal, entry.ordinal
        if self._probe is not None:
            self._probe.remove(entry.sequence)
        self._window.forget(entry)

    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries of which their shards do not know yet, in the order of their removal."""
        gone = [
            RemovedEntry(after, Entry(sequence, None, None, None, 0, ordinal=ordinal, settled=True, row=sequence))
            for sequence, (after, ordinal) in self._gone.items()
        ]
        return sorted([*gone, *self._unsettled_gone.values()], key=lambda one: (one.ordinal, one.entry.sequence))

    def state(self) -> bytes:
        """Return what is needed beside `young` and `removed` to go on."""
        return msgspec.msgpack.encode(
            _State(self._shards, self._settled_to, self._live, self._expires, *self._oldest.state())
        )

    def held(self) -> HeldEntries:
        """Return a view of the live entries that are here: those of the window."""
        return HeldEntries((HeldValues(tuple(self.young())),))

    def _expire_next(self) -> list[int]:
        return [sequence for sequence, _ in self._oldest.ahead(OLDEST_AHEAD)]

    def _settled_visit(self, url: int) -> Entry | None:
        if self._probe is not None and self._present is not None:
            _, answers = self._present
            settled = [self._probe.entry(row) for row in targets_of(self._probe.page, answers) if row not in self._gone]
        else:
            settled = [entry for entry in self._record if entry.sequence not in self._gone]
        return next((entry for entry in settled if entry.url_hash == url), None)

    def _begin_probe(self, ordinal: int) -> None:
        """Give the next pages that were announced their places, and take what the shards have answered for them."""
        columns = self._next_columns()
        answers = self._batches.popleft() if self._batches else ()
        counts = {len(answer.looked_at) for answer in answers}
        if counts != {len(columns)}:
            raise AnswersDifferError(
                f"{len(columns)} pages are decided together, the shards have answered for {sorted(counts)}: they do "
                "not read the same log"
            )
        self._settle(ordinal - self._layout.window + len(columns) - 1)
        self._window.leave(ordinal - self._layout.window)
        self._window.announce(columns)
        self._present = columns, answers
        self._probe = self._renewed(0)

    def _renewed(self, first: int) -> BatchProbe:
        assert self._present is not None
        columns, answers = self._present
        return BatchProbe(columns, self._bounds, merged(answers, columns, self._gone), self._window, first)

    def _end_probe(self) -> None:
        super()._end_probe()
        self._present = None

    def _settle(self, last: int) -> None:
        """Leave the entries up to an ordinal to their shards, and forget removals of which these know."""
        if last <= self._settled_to:
            return
        self._settled_to = last
        settled = self._window.unsettled(last)
        if len(settled):
            sequences = settled.rows["sequence"].astype(np.int64)
            self._window.settle(sequences, [b""] * len(settled))
            if self._expires:
                self._oldest.extend(settled.rows[settled.live])
            for sequence in sequences[~settled.live].tolist():
                gone = self._unsettled_gone.pop(sequence)
                self._gone[sequence] = gone.ordinal, gone.entry.ordinal
        for sequence in [sequence for sequence, (after, _) in self._gone.items() if after <= last]:
            del self._gone[sequence]

    def _restore(self, state: DeciderState) -> None:
        """Fill the window and what is gone."""
        young = list(state.young)
        for removed in state.removed:
            if removed.entry.settled:
                self._gone[removed.entry.sequence] = removed.ordinal, removed.entry.ordinal
            else:
                young.append(removed.entry)
                self._unsettled_gone[removed.entry.sequence] = removed
        young.sort(key=lambda entry: entry.ordinal)
        self._window.announce(PageColumns.of_entries(young))
        for number, entry in enumerate(young):
            self._window.keep(number, live=entry.sequence not in self._unsettled_gone)
        self._window.finish()


class _Oldest:
    """The earliest settled entries of all shards, in order, as far as they are listed.

    listed: OLDEST[n]. bound: the last sequence up to which they are all; -1: they are all. listed_to: ordinal up to
    which entries were settled in the shards when these listed them. Where those that are listed are used up, there is
    no earliest until the next list: then entries expire later, and the order stays.
    """

    def __init__(self, listed: npt.NDArray[Any], bound: int, listed_to: int) -> None:
        self._listed, self._later = listed, list[npt.NDArray[Any]]()
        self._next, self._bound, self._listed_to = 0, bound, listed_to
        self._ahead: deque[tuple[int, int]] = deque()
        self._removed: set[int] = set()

    @property
    def is_all(self) -> bool:
        """Whether there are no others than those that are listed."""
        return self._bound < 0

    def first(self) -> tuple[int, int] | None:
        """Return sequence and ordinal of the earliest one, or None."""
        while True:
            while self._ahead and self._ahead[0][0] in self._removed:
                self._removed.discard(self._ahead.popleft()[0])
            if self._ahead:
                return self._ahead[0]
            if not self._load():
                return None

    def ahead(self, count: int) -> list[tuple[int, int]]:
        """Return the earliest ones, so many or all there are."""
        self.first()
        while True:
            some = islice(self._ahead, count + len(self._removed))
            found = [pair for pair in some if pair[0] not in self._removed]
            if len(found) >= count or not self._load():
                return found[:count]

    def remove(self, sequence: int) -> None:
        """Remove one of them, if it is listed."""
        if not self._ahead or sequence >= self._ahead[0][0]:
            self._removed.add(sequence)

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Append entries that were settled, and come after all others. rows: ROW[n]."""
        if not self.is_all:  # they are behind the bound, and the next list has them
            return
        later = rows[rows["ordinal"].astype(np.int64) > self._listed_to]
        added = np.empty(len(later), OLDEST)
        added["sequence"], added["ordinal"] = later["sequence"], later["ordinal"]
        self._later.append(added)

    def replace(self, answers: Sequence[MessageAnswer], gone: Collection[int], listed_to: int) -> None:
        """Take the lists of all shards in place of what was known."""
        listed = np.concatenate([answer.oldest for answer in answers])
        listed = listed[~np.isin(listed["sequence"], np.fromiter(gone, np.int64, len(gone)))]
        ends = [int(answer.oldest["sequence"][-1]) for answer in answers if not answer.is_all]
        self._listed, self._later, self._next = np.sort(listed, order="sequence"), [], 0
        self._ahead.clear()
        self._removed.clear()
        self._bound, self._listed_to = min(ends, default=-1), listed_to

    def state(self) -> tuple[bytes, int, int]:
        """Return what is left, as OLDEST, with bound and listed_to."""
        left = np.concatenate([np.array(self._ahead, OLDEST), self._listed[self._next :], *self._later])
        left = left[~np.isin(left["sequence"], np.fromiter(self._removed, np.int64, len(self._removed)))]
        return left.tobytes(), self._bound, self._listed_to

    def _load(self) -> bool:
        """Take more of those that are listed; return whether there were any."""
        if self._next == len(self._listed):
            if not self._later:
                return False
            self._listed, self._later, self._next = np.concatenate(self._later), [], 0
        some = self._listed[self._next : self._next + _OLDEST_LOADED]
        self._next += len(some)
        if self._bound >= 0:
            some = some[some["sequence"] <= self._bound]
        self._ahead.extend(some.tolist())
        return len(some) > 0


class AnsweredNames:
    """The names of entries: those in the answers, and those of `names` for entries of the window."""

    def __init__(self, names: MutablePageNames) -> None:
        self._names = names
        self.candidates: ShardCandidates | None = None

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`."""
        answered = None if self.candidates is None else self.candidates.name(sequence)
        return answered or self._names.name(sequence)

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Store the id and URL of the kept page at `sequence`."""
        self._names.add(sequence, page_id, url)

    def erase(self, sequence: int) -> None:
        """Erase the id and URL of the page at `sequence`, which was retracted."""
        self._names.erase(sequence)


def _named(entry: Entry) -> Entry:
    """Return a settled entry whose row is named by its sequence."""
    entry.row = entry.sequence
    return entry


def shards_in(state: DeciderState) -> int | None:
    """Return how many shards answered to the resolver whose state it is; None for a state of none."""
    try:
        return msgspec.msgpack.decode(state.candidates, type=_State).shards or None
    except (ValueError, msgspec.MsgspecError):
        return None


def differing(one: bytes, other: bytes) -> int | None:
    """Return the first place in which two answers differ, None if they are the same."""
    if one == other:
        return None
    return bisect_right(range(min(len(one), len(other))), 0, key=lambda end: int(one[: end + 1] != other[: end + 1]))
