"""Describe a state folder; another process may write to it at the same time.

Marks of a journal: what a note outside of it says about how far it was.

A folder may get an older copy of its journal, or another one, while a note stays beside it. A journal has a mark if it
is the same one and has the record that was its last one then; so it has all records before, too.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dedup_service.core.decision.expiry import ExpiryReason
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.verdict import CLAIM_REFUSED, Guard, VerdictKind, guard_counter
from dedup_service.runtime.embedded.database import WRITE_AHEAD, Database
from dedup_service.runtime.embedded.journal import read_counters, require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER
from dedup_service.runtime.embedded.untouched import open_untouched
from dedup_service.runtime.store.store_info import disk_bytes, store_info


def journal_mark(folder: Path, sequence: int | None = None) -> str:
    """Return the mark of the journal in the state `folder` as it is now, or was at the record `sequence`.

    Takes no lock. StateError if there is no journal, or if it cannot be read.
    """
    database = open_read_only(folder)
    try:
        with database.reading() as connection:
            header = require_header(connection, database.path)
            log = JournalReader(database, header.space_id)
            at = log.last_sequence() if sequence is None else sequence
            return f"{at} {header.identity} {log.tail(at)}"
    finally:
        database.close()


def has_mark(folder: Path, mark: str) -> bool:
    """Return whether the journal in the state `folder` has all that it had when the mark was taken."""
    at = mark.partition(" ")[0]
    try:
        return at.isdecimal() and len(at) < 20 and journal_mark(folder, int(at)) == mark
    except StateError:
        return False


_NOWHERE = Path(os.devnull)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """What a state holds at one moment.

    Attributes:
        space_id: Name of its space.
        space: The properties of the space, as plain values.
        format_version: Version of the journal format.
        rule: The match rule in force, as plain values.
        keep: The bounds of expiry in force, as plain values; empty if all pages are kept.
        sequence: Sequence of the last record.
        pages: Number of pages by verdict, for all five verdicts.
        claim_refused: Number of pages that name a kept page of another text as canonical.
        guards: Number of undecided pages by guard, for all guards.
        entries: Kept pages, with which later pages are compared.
        expired: Number of kept pages that expired, by reason (`count`, `age`).
        retractions: Number of retractions.
        policies: Number of policy records, including the first one.
        deleted_up_to: Sequence up to which records of pages that were not kept are deleted; 0 if none are.
        text_bytes: Size of the compressed texts.
        commit_sequence: Last record that the last commit of the kept pages has; None before any.
        commit_damage: Why that commit cannot be read; None if it can.
        commit_age_s: Age of that commit in seconds; None before any.
        memory: Bytes of memory by structure in a process that has the state open, as of the last commit; empty before
            any. Without the window, the journal's cache and the program, which do not grow with the kept pages.
        cells: Cells with an entry, or that turned some away, as of the last commit; None before any.
        cells_overflowed: Those of them that turned entries away.
        rows: Rows that kept pages have had up to the last commit, those of the first base included.
        live_rows: Those of them that are compared with; the others take no space. None before any commit.
        disk: Bytes on disk by structure: files of kept pages, `journal` and its `write_ahead`.
        journal_bytes: Size of the journal on disk, including the write-ahead file.
        journal_free_bytes: Pages of the journal that have no content any more.
        pages_bytes: Size of the folder of kept pages on disk.
        bases: Names of the bases that it was begun with, and the last record of each that counts.
    """

    space_id: str
    space: Mapping[str, Any]
    format_version: int
    rule: Mapping[str, Any]
    keep: Mapping[str, int]
    sequence: int
    pages: Mapping[str, int]
    claim_refused: int
    guards: Mapping[str, int]
    entries: int
    expired: Mapping[str, int]
    retractions: int
    policies: int
    deleted_up_to: int
    text_bytes: int
    commit_sequence: int | None
    commit_age_s: float | None
    commit_damage: str | None
    memory: Mapping[str, int]
    cells: int | None
    cells_overflowed: int | None
    rows: int
    live_rows: int | None
    disk: Mapping[str, int]
    journal_bytes: int
    journal_free_bytes: int
    pages_bytes: int
    bases: tuple[tuple[str, int], ...] = ()


def state_info(folder: str | Path) -> StateInfo:
    """Return what the state `folder` holds; StateError if it has no state. Takes no lock."""
    database = open_read_only(folder)
    try:
        return read_info(database, Path(folder))
    finally:
        database.close()


def open_read_only(folder: str | Path) -> Database:
    """Open the journal in the state `folder` for reading, as `open_untouched`; StateError if the folder has none.

    ConfigurationError if there is no folder.
    """
    if not Path(folder).is_dir():
        raise ConfigurationError(f"there is no folder {folder}: give the state folder of `filter` or `crawl`")
    journal = Path(folder) / JOURNAL_FILE
    if not journal.exists():
        raise StateError(f"{folder} holds no twinsieve state: there is no {JOURNAL_FILE} in it; check the path")
    return open_untouched(journal)


def read_info(database: Database, folder: Path | None) -> StateInfo:
    """Return the same from an open database. folder: None for a state in memory."""
    with database.reading() as connection:
        header = require_header(connection, database.path)
        counters = read_counters(connection)
        log = JournalReader(database, header.space_id)
        sequence, policy = log.last_sequence(), log.policy()
        rare = dict(connection.execute("SELECT kind, count(*) FROM log WHERE kind <> 'page' GROUP BY kind"))
        free_bytes = database.free_bytes()
    journal, pages = (folder or _NOWHERE) / JOURNAL_FILE, (folder or _NOWHERE) / PAGES_FOLDER
    store = store_info(pages)
    journal_disk = {
        "journal": disk_bytes(journal),
        "write_ahead": disk_bytes(journal.with_name(journal.name + WRITE_AHEAD)),
    }
    return StateInfo(
        space_id=header.space_id,
        space=MappingProxyType(dict(header.space)),
        format_version=header.format_version,
        rule=MappingProxyType(policy["rule"]),
        keep=MappingProxyType(policy.get("keep", {})),
        sequence=sequence,
        pages=MappingProxyType({kind.value: counters.get(kind.value, 0) for kind in VerdictKind}),
        claim_refused=counters.get(CLAIM_REFUSED, 0),
        guards=MappingProxyType({guard.value: counters.get(guard_counter(guard), 0) for guard in Guard}),
        entries=counters.get("entries", 0),
        expired=MappingProxyType({reason.value: counters.get(f"expired_{reason}", 0) for reason in ExpiryReason}),
        retractions=rare.get("retraction", 0),
        policies=rare.get("policy", 0),
        deleted_up_to=counters.get("deleted_up_to", 0),
        text_bytes=counters.get("text_bytes", 0),
        commit_sequence=store.commit_sequence,
        commit_age_s=store.commit_age_s,
        commit_damage=store.commit_damage,
        memory=MappingProxyType(store.memory),
        cells=store.cells,
        cells_overflowed=store.cells_overflowed,
        rows=store.rows,
        live_rows=store.live_rows,
        disk=MappingProxyType({**store.disk, **{name: size for name, size in journal_disk.items() if size}}),
        journal_bytes=sum(journal_disk.values()),
        journal_free_bytes=free_bytes,
        pages_bytes=sum(store.disk.values()),
        bases=tuple((label.name, label.records) for label in log.bases),
    )
