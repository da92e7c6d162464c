"""What a state folder holds, read beside whoever is writing in it."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dedup_service.core.errors import StateError
from dedup_service.core.verdict import Guard, VerdictKind
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.journal import guard_counter, read_counters, read_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.snapshot import read_label
from dedup_service.runtime.embedded.state import JOURNAL_FILE, SNAPSHOT_FILE

__all__ = ["StateInfo", "read_info", "state_info"]

_NOWHERE = Path(os.devnull)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """A state at one instant.

    space_id, space, format_version: as written in its header. rule: the match rule in force, as plain values.
    sequence: of the last record. pages: by verdict, all five. guards: undecided pages by guard, all guards.
    entries: kept pages, compared with later ones.
    retractions, policies: records of these kinds; the first policy counts.
    text_bytes: compressed texts. snapshot_sequence, snapshot_age_s: None where there is no snapshot.
    journal_bytes, snapshot_bytes: on disk, the write-ahead file included.
    """

    space_id: str
    space: Mapping[str, Any]
    format_version: int
    rule: Mapping[str, Any]
    sequence: int
    pages: Mapping[str, int]
    guards: Mapping[str, int]
    entries: int
    retractions: int
    policies: int
    text_bytes: int
    snapshot_sequence: int | None
    snapshot_age_s: float | None
    journal_bytes: int
    snapshot_bytes: int


def state_info(folder: str | Path) -> StateInfo:
    """Return what is in the state `folder`; StateError where it holds none. Takes no lock."""
    journal = Path(folder) / JOURNAL_FILE
    if not journal.exists():
        raise StateError(f"{folder} holds no twinsieve state: there is no {JOURNAL_FILE} in it; check the path")
    database = Database(journal, read_only=True)
    try:
        return read_info(database, Path(folder))
    finally:
        database.close()


def read_info(database: Database, folder: Path | None) -> StateInfo:
    """Return the same from an open database; folder: None for a state in memory."""
    with database.reading() as connection:
        header = read_header(connection, database.path)
        if header is None:
            raise StateError(f"{database.path} is empty: its first opening was cut off; delete it, or open it to write")
        counters = read_counters(connection)
        log = JournalReader(database, header.space_id)
        sequence, rule = log.last_sequence(), log.policy()["rule"]
        rare = dict(connection.execute("SELECT kind, count(*) FROM log WHERE kind <> 'page' GROUP BY kind"))
    journal, snapshot = (folder or _NOWHERE) / JOURNAL_FILE, (folder or _NOWHERE) / SNAPSHOT_FILE
    label = read_label(snapshot)
    return StateInfo(
        space_id=header.space_id,
        space=MappingProxyType(dict(header.space)),
        format_version=header.format_version,
        rule=MappingProxyType(rule),
        sequence=sequence,
        pages=MappingProxyType({kind.value: counters.get(kind.value, 0) for kind in VerdictKind}),
        guards=MappingProxyType({guard.value: counters.get(guard_counter(guard), 0) for guard in Guard}),
        entries=counters.get("entries", 0),
        retractions=rare.get("retraction", 0),
        policies=rare.get("policy", 0),
        text_bytes=counters.get("text_bytes", 0),
        snapshot_sequence=None if label is None else label.sequence,
        snapshot_age_s=None if label is None else max(0.0, time.time() - snapshot.stat().st_mtime),
        journal_bytes=_size(journal) + _size(journal.with_name(journal.name + "-wal")),
        snapshot_bytes=_size(snapshot),
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
