"""Where the step `canonical` goes on: its table, its replica, and what the topic has.

The folder has a replica of the log (`canonical-pages`, as of a snapshot) and the table of groups (`canonical.sqlite`),
which is at the same message or a later one. Both may be lost: they are built again from the log. What is in the topic
already is not written again, because the topic says up to where in the log it is right.

Invariant: the table is of the log as the replica has it. So without a snapshot, and where the log continued
differently, the table is begun again, too; and where it says that more was written than the topic has, because that was
made again or lost its end.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import offset_of
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.groups.canonical_table import BEGINNING, CanonicalTable, TablePosition
from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader
from dedup_service.runtime.kafka.messages.canonical import position_in
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, log_parts
from dedup_service.runtime.kafka.state.deciding_store import StoredSnapshot
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.mounted_bases import MountedBases
from dedup_service.runtime.kafka.state.restore import refuse_part, replica_of, usable_snapshot
from dedup_service.runtime.kafka.topics import Topics

_LOG = logging.getLogger(__name__)

CANONICAL_PAGES, CANONICAL_TABLE = "canonical-pages", "canonical.sqlite"
"""Of the folder: the kept pages of the replica, and the table. A deciding step uses neither."""

_FETCH_BYTES = 1 << 20
_ANSWER_S = 30.0
_TAIL_OFFSETS, _MORE = 256, 8
"""Offsets at the end of the topic among which its last message is looked for, and how many times more if there is none:
transactions that were aborted have offsets, too."""


@dataclass(frozen=True, slots=True, eq=False)
class RestoredGroups:
    """A table with the replica at its position."""

    table: CanonicalTable
    replica: Replica


def written_position(connection: Connection, topics: Topics) -> TablePosition:
    """Return up to where in the log the topic `canonical` is right; BEGINNING if nothing was written to it.

    The transactions of earlier writers must have ended (`TransactionalProducer.open`). Raises BrokerError.
    """
    partition = TopicPartition(topics.canonical, 0)
    with administration(connection) as admin:
        end = admin.high_watermarks([partition])[partition]
    with closing(PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_ANSWER_S)) as reader:
        reader.ends([partition])
        beginning, back = reader.beginnings[partition], _TAIL_OFFSETS
        while True:
            first = max(beginning, end - back)
            reader.assign({partition: first})
            last = BEGINNING
            for records in reader.read({partition: end}):
                for record in records:
                    last = position_in(record.headers) or last
            if last != BEGINNING or first == beginning:
                return last
            back *= _MORE


def restore_groups(
    local: LocalState,
    log: LogConsumer,
    log_id: str,
    written: TablePosition,
    *,
    stop: threading.Event,
    progress: Callable[[RestoreEvent], None] = lambda _event: None,
    bases: MountedBases | None = None,
) -> RestoredGroups | None:
    """Return table and replica as the folder has them, with `log` where they go on; None if `stop` was set.

    log_id: identity of the log. written: up to where in the log the topic is right. bases: of the log. Raises as
    `restore`.
    """
    end = log.end()
    stored = usable_snapshot(local, log, end, log_id, stop)
    if stop.is_set():
        return None
    if stored is not None:
        refuse_part(stored, local)
    path = local.folder / CANONICAL_TABLE
    table = CanonicalTable.open(path, log_id)
    if (reason := _unusable(table, stored, written)) is not None:
        if table.position.offset:
            _LOG.warning("%s is built again from the log: %s", path, reason)
        table, stored = _emptied(table, path, log_id), None
    usable = stored

    def restored(snapshot: StoredSnapshot | None) -> Replica:
        nonlocal table, usable
        if snapshot is not usable:
            table, usable = _emptied(table, path, log_id), snapshot
        return replica_of(local, log, log_id, snapshot, stop, bases)

    replica = local.pages.go_on(stored, restored)
    position = table.position.offset
    if position > end:
        raise StateError(
            f"{path} is at offset {position}, the log ends at {end}: the topic lost records or was created again; "
            "restore the topic, or, if this is on purpose, delete the folder"
        )
    if not _catch_up(replica, log, 0 if usable is None else offset_of(usable.sequence) + 1, position, stop, progress):
        return None
    return RestoredGroups(table, replica)


def _unusable(table: CanonicalTable, stored: StoredSnapshot | None, written: TablePosition) -> str | None:
    """Return why a table cannot be gone on with, None if it can."""
    if stored is None:
        return "there is no snapshot of the log beside it"
    if table.position.offset <= offset_of(stored.sequence):
        return "it is older than the snapshot of the log beside it"
    if table.sent > written:
        return "the topic has lost messages"
    return None


def _emptied(table: CanonicalTable, path: Path, log_id: str) -> CanonicalTable:
    table.close()
    CanonicalTable.delete(path)
    return CanonicalTable.open(path, log_id)


def _catch_up(
    replica: Replica,
    log: LogConsumer,
    start: int,
    end: int,
    stop: threading.Event,
    progress: Callable[[RestoreEvent], None],
) -> bool:
    """Apply the messages that the table has and the replica has not; return False if `stop` was set."""
    log.seek(start)
    for messages in log.read_to_end(max_records=MESSAGES_AT_ONCE, end=end):
        if stop.is_set():
            return False
        known = [message for message in messages if message.offset < end]
        replica.apply_parts(log_parts(known), lambda records: [False] * len(records))
        progress(RestoreEvent(min(log.position, end) - start, end - start, 0.0))
    log.seek(end)
    return True
