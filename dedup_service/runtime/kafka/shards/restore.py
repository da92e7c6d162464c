"""Restores a shard and a resolver: from a snapshot in the folder, or from the beginning of the log.

Unlike a service with all entries, neither reads the log to its end before it starts: a shard needs outcomes for that,
and a resolver answers. They go on from the snapshot as if they had never stopped.

The kept pages of a shard whose log goes on from bases: those rows of the bases that are in its slots, copied.

A link would hold the rows of the other shards as well. So the rows are appended to a store of the shard's own, as
`shard copy` does it, and its tables are built from them.

A base was closed between two pages: entries that were removed just before are still in its cells. The shard has them
too, and removes them where the cells do (`core.shards.shard`).
"""

import threading
from contextlib import closing
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path

from dedup_service._native import Entry, StoreLabel
from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.decider import DeciderState, MutablePageNames
from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import Policy, offset_of
from dedup_service.core.shards.candidates import AnsweredNames, ShardCandidates, shards_in
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.embedded.database import ForeignStateError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader
from dedup_service.runtime.kafka.messages.shard_messages import decode_answer_part
from dedup_service.runtime.kafka.shards.shard_step import RestoredShard
from dedup_service.runtime.kafka.state.deciding_state import pending_outcomes_of
from dedup_service.runtime.kafka.state.deciding_store import StoredSnapshot
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.mounted_bases import MountedBases
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.restore import RestoredReplica, page_name_reader, usable_snapshot
from dedup_service.runtime.kafka.state.shard_state import number_in, shard_state
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.store.page_files import open_or_create
from dedup_service.runtime.store.stored_entries import live_pieces, pieces_of


class ShardBases:
    """What shard `number` has of bases, for its deciding store."""

    def __init__(self, bases: MountedBases, number: ShardNumber) -> None:
        self._bases, self._number = bases, number
        self._removed: list[Entry] = []

    def begun(self, log: str, policy: Policy) -> BasedState:
        """Return what the log begins with. log: its identity. policy: its first one."""
        state = self._bases.begun(log, policy)
        removed = [gone.entry for gone in state.decider.removed if gone.entry.settled]
        self._removed = sorted(removed, key=attrgetter("sequence"))
        return state

    def make(self, pages: Path, label: StoreLabel, policy: Policy) -> None:
        """Make the kept pages of the shard before the first record of the log, in the folder `pages`.

        `begun` comes first.
        """
        with closing(open_or_create(pages, label)) as own:
            with self._bases.pages(label, policy) as store:
                stored = () if store is None else (store.entries(numbers) for numbers in live_pieces(store))
                entries = merge(chain.from_iterable(stored), self._removed, key=attrgetter("sequence"))
                for piece in pieces_of(entry for entry in entries if self._number.owns(entry.ordinal)):
                    own.append(piece)
                    self._bases.report("copying pages of bases", own.next_row, 0)
            own.begin_commit(-1, "", b"").finish(b"")  # without a state, so that it is no snapshot

    def adopt(self, pages: Path) -> None:
        """Do nothing: the rows are the shard's own."""


_FETCH_BYTES = 1 << 20
_ANSWER_S = 30.0
_TAIL_RECORDS = 256
"""Answers at the end of a partition among which the last of a shard is looked for: its replicas and other numbers of
shards write there, too."""


def restore_shard(
    number: ShardNumber,
    local: LocalState,
    log: LogConsumer,
    log_id: str,
    policy: Policy,
    topics: Topics,
    *,
    answered: int,
    stop: threading.Event,
    bases: MountedBases | None = None,
) -> RestoredShard | None:
    """Return shard `number` as its folder has it, with `log` at the place where it goes on; None if `stop` was set.

    log_id: identity of the log. policy: its first one. answered: offset of the log up to which it has answered. bases:
    those of the log.
    ConfigurationError if slots cannot be shared so; ForeignStateError if the folder is that of something else.
    """
    number.check(policy.layout.slots)
    stored = usable_snapshot(local, log, log.end(), log_id, stop)
    if stop.is_set():
        return None
    if stored is not None:
        _require_shard(stored, number, local)

    def restored(usable: StoredSnapshot | None) -> RestoredShard:
        shard = _opened(number, local, usable, bases)
        sequence = -1 if usable is None else usable.sequence
        local.names.begin(log_id, sequence, page_name_reader(log, stop, shard.holds))
        log.seek(shard.offset + 1)
        written = {} if usable is None else usable.state.written
        tail = "" if usable is None else usable.tail
        return RestoredShard(shard, log_id, tail, written.get((topics.outcomes, 0), 0), answered)

    return local.pages.go_on(stored, restored)


def _opened(number: ShardNumber, local: LocalState, stored: StoredSnapshot | None, bases: MountedBases | None) -> Shard:
    """Return a shard as a snapshot has it; None: before the first message."""
    own = None if bases is None else ShardBases(bases, number)
    local.pages.begin(stored, bases=own)
    state = None if stored is None else shard_state(stored.state.replica)
    names: MutablePageNames = local.names if bases is None else bases.names(local.names)
    return Shard(number, names, entries=local.pages.entries, state=state, bases=None if own is None else own.begun)


class RestoredResolver:
    """A resolver's replica with the names that it uses, and where the answers go on that it needs.

    positions: of the partitions of `candidates`; empty: answers to all messages are needed; None: another number of
    shards has answered until now. done: message of the log up to which answers are not needed.
    """

    def __init__(
        self, restored: RestoredReplica, names: AnsweredNames, done: int, positions: dict[int, int] | None
    ) -> None:
        self.restored, self.names, self.done, self.positions = restored, names, done, positions


def restore_resolver(
    shards: int,
    local: LocalState,
    log: LogConsumer,
    log_id: str,
    policy: Policy,
    written: dict[tuple[str, int], int],
    topics: Topics,
    *,
    stop: threading.Event,
    bases: MountedBases | None = None,
) -> RestoredResolver | None:
    """Return the resolver of so many shards as its folder has it; None if `stop` was set.

    written: (topic, partition) → offset below which all outputs are written. policy: the first one of the log.
    bases: those of the log.
    """
    ShardNumber(1, shards).check(policy.layout.slots)
    stored = usable_snapshot(local, log, log.end(), log_id, stop)
    if stop.is_set():
        return None
    if stored is not None and shards_in(stored.state.replica.decider) is None:
        raise ForeignStateError(
            f"{local.folder} has the state of another step than a resolver: give a folder of its own"
        )
    return local.pages.go_on(
        stored, lambda usable: _resolver_of(shards, local, log, log_id, usable, written, topics, stop, bases)
    )


def _resolver_of(
    shards: int,
    local: LocalState,
    log: LogConsumer,
    log_id: str,
    stored: StoredSnapshot | None,
    written: dict[tuple[str, int], int],
    topics: Topics,
    stop: threading.Event,
    bases: MountedBases | None,
) -> RestoredResolver:
    """Return the resolver that a snapshot has, one at the beginning of the log for None."""
    local.pages.begin(stored)
    names = AnsweredNames(local.names if bases is None else bases.names(local.names))

    def candidates(policy: Policy, state: DeciderState) -> ShardCandidates:
        local.pages.entries(log_id, policy)  # without entries: a snapshot has the window and the rest of the state
        names.candidates = ShardCandidates(policy, state, shards)
        return names.candidates

    state = None if stored is None else stored.state.replica
    replica = Replica(names, state=state, candidates=candidates, bases=None if bases is None else bases.begun)
    sequence = -1 if stored is None else stored.sequence
    local.names.begin(log_id, sequence, page_name_reader(log, stop, replica.holds))
    outcomes = PendingOutcomes(topic=topics.pages)
    positions: dict[int, int] | None = {}
    if stored is not None:
        outcomes = pending_outcomes_of(stored.state, topics.pages)
        places = stored.state.written.items()
        positions = {partition: at for (topic, partition), at in places if topic == topics.candidates}
        if shards_in(stored.state.replica.decider) != shards:
            positions = None
    for (topic, partition), offset in written.items():
        outcomes.written_below(topic, partition, offset)
    done = log.first - 1 if stored is None else offset_of(stored.sequence)
    log.seek(done + 1)
    restored = RestoredReplica(replica, outcomes, done + 1, "" if stored is None else stored.tail, log.end())
    return RestoredResolver(restored, names, done, positions)


def answered_to(connection: Connection, topic: str, number: ShardNumber, log_id: str) -> int:
    """Return up to which message of the log a shard's partition has its answers, -1 if none is found.

    Answers are in the order of the log, so the last one says it. Raises as `PartitionReader`.
    """
    partition = TopicPartition(topic, number.index - 1)
    with closing(PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_ANSWER_S)) as reader:
        end = reader.ends([partition])[partition]
        first = max(reader.beginnings[partition], end - _TAIL_RECORDS)
        if first >= end:
            return -1
        reader.assign({partition: first})
        last = -1
        for records in reader.read({partition: end}):
            for record in records:
                part = decode_answer_part(record.value)
                if part.number == number and part.log == log_id and part.part == part.parts - 1:
                    last = max(last, part.offset)
        return last


def _require_shard(stored: StoredSnapshot, number: ShardNumber, local: LocalState) -> None:
    found = number_in(stored.state.replica)
    if found is None:
        raise ForeignStateError(f"{local.folder} has the state of no shard: give shard {number} a folder of its own")
    if found != number:
        raise ConfigurationError(
            f"{local.folder} has shard {found}, not {number}: give the folder of that shard, or an empty one, which is "
            "filled from the log"
        )
