"""Describe a state folder; another process may write to it at the same time."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dedup_service.core.decision.expiry import ExpiryReason
from dedup_service.core.errors import StateError
from dedup_service.core.verdict import CLAIM_REFUSED, Guard, VerdictKind, guard_counter
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.journal import read_counters, require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import MANIFEST, Manifest, read_manifest

__all__ = ["StateInfo", "open_read_only", "read_info", "state_info"]

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
        commit_age_s: Age of that commit in seconds; None before any.
        journal_bytes: Size of the journal on disk, including the write-ahead file.
        pages_bytes: Size of the folder of kept pages on disk.
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
    journal_bytes: int
    pages_bytes: int


def state_info(folder: str | Path) -> StateInfo:
    """Return what the state `folder` holds; StateError if it has no state. Takes no lock."""
    database = open_read_only(folder)
    try:
        return read_info(database, Path(folder))
    finally:
        database.close()


def open_read_only(folder: str | Path) -> Database:
    """Open the journal in the state `folder` for reading; StateError if the folder has none. Takes no lock."""
    journal = Path(folder) / JOURNAL_FILE
    if not journal.exists():
        raise StateError(f"{folder} holds no twinsieve state: there is no {JOURNAL_FILE} in it; check the path")
    return Database(journal, read_only=True)


def read_info(database: Database, folder: Path | None) -> StateInfo:
    """Return the same from an open database. folder: None for a state in memory."""
    with database.reading() as connection:
        header = require_header(connection, database.path)
        counters = read_counters(connection)
        log = JournalReader(database, header.space_id)
        sequence, policy = log.last_sequence(), log.policy()
        rare = dict(connection.execute("SELECT kind, count(*) FROM log WHERE kind <> 'page' GROUP BY kind"))
    journal, pages = (folder or _NOWHERE) / JOURNAL_FILE, (folder or _NOWHERE) / PAGES_FOLDER
    manifest = _manifest(pages)
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
        commit_sequence=None if manifest is None else manifest.sequence,
        commit_age_s=None if manifest is None else max(0.0, time.time() - (pages / MANIFEST).stat().st_mtime),
        journal_bytes=_size(journal) + _size(journal.with_name(journal.name + "-wal")),
        pages_bytes=sum(map(_size, pages.iterdir())) if pages.is_dir() else 0,
    )


def _manifest(pages: Path) -> Manifest | None:
    """Return the last commit of the kept pages; None before any."""
    try:
        manifest = read_manifest(pages)
    except StoreDamagedError:
        return None
    return manifest if manifest.extra else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # there is none, or it was replaced at this moment
        return 0
