"""Running sums over the log, stored with the batch that changes them.

`unique`, `duplicate`, `unchanged`, `updated`, `undecided` count pages, `guard_hosts` and the like those of them that a
guard left undecided; `entries` the live entries (a restore
is checked against it); `text_bytes` is what `texts` holds.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable

from dedup_service.core.guards import Guard
from dedup_service.runtime.page_row import DecidedPage

__all__ = ["change_counters", "changes_of", "guard_counter", "read_counters"]


def guard_counter(guard: Guard) -> str:
    """Return the counter of the pages that `guard` left undecided."""
    return f"guard_{guard}"


def read_counters(connection: sqlite3.Connection) -> dict[str, int]:
    """Return all counters by name; one that never changed is missing."""
    return dict(connection.execute("SELECT name, value FROM counter"))


def changes_of(batch: Iterable[DecidedPage]) -> Counter[str]:
    """Return what `batch` adds to the counters."""
    changes: Counter[str] = Counter()
    for decided in batch:
        changes[decided.decision.verdict.kind.value] += 1
        if decided.decision.verdict.guard is not None:
            changes[guard_counter(decided.decision.verdict.guard)] += 1
        changes["entries"] += (decided.decision.entry is not None) - (decided.decision.replaces is not None)
    return changes


def change_counters(connection: sqlite3.Connection, changes: Counter[str]) -> None:
    """Add `changes` to the stored counters, in the open transaction."""
    connection.executemany(
        "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        changes.items(),
    )
