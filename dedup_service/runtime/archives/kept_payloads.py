"""The payloads that an archive has: where the first capture of each is, by what identifies the payload.

How: a table of SQLite in a temporary file without a name, which ends with the process. It takes some 260 bytes of disk
a payload, and no more memory than its cache, however large the archive is. It begins empty with each archive: a run
that is repeated writes the archive from its beginning, and so remembers the same again.
"""

import sqlite3
from dataclasses import dataclass

from dedup_service.runtime.archives.visit import Payload, Visit

CACHE_KIB = 8 * 1024


@dataclass(frozen=True, slots=True)
class Original:
    """The first capture of a payload in an archive. Fields as in `Visit`; digest: as in `Payload`."""

    uri: str
    date: str
    record_id: str | None
    digest: str


class KeptPayloads:
    """Payloads of the captures of one archive that have all their bytes there."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE kept (key BLOB PRIMARY KEY, uri TEXT, date TEXT, record_id TEXT, digest TEXT) WITHOUT ROWID"
        )

    def find(self, payload: Payload) -> Original | None:
        """Return the first capture of a payload, or None."""
        row = self._database.execute(
            "SELECT uri, date, record_id, digest FROM kept WHERE key = ?", (payload.key,)
        ).fetchone()
        return None if row is None else Original(*row)

    def add(self, visit: Visit) -> None:
        """Remember a capture that is written with all its bytes; one without payload or date cannot be referred to."""
        if visit.payload is not None and visit.date is not None:
            values = (visit.payload.key, visit.uri, visit.date, visit.record_id, visit.payload.digest)
            self._database.execute("INSERT OR IGNORE INTO kept VALUES (?, ?, ?, ?, ?)", values)

    def close(self) -> None:
        """Remove the table."""
        self._database.close()
