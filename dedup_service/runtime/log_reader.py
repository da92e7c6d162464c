"""Questions to the log of a journal. None of them changes anything."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import xxhash

from dedup_service.core.entry_rows import EntryRows
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.corrections import Correction, read_detail, with_force
from dedup_service.runtime.database import Database
from dedup_service.runtime.page_row import VERDICT_COLUMNS, VERDICTS, name_of, verdict_of

__all__ = ["LogReader"]

_ENTRIES = """
    SELECT sequence, ifnull(words, 0), ifnull(body, 0), ifnull(body_hash, 0), url_hash,
           ifnull(length(evidence), 0), entry
    FROM log WHERE sequence > ? AND entry IS NOT NULL ORDER BY sequence"""
_METADATA = """
    SELECT evidence FROM log
    WHERE sequence > ? AND entry IS NOT NULL AND evidence IS NOT NULL ORDER BY sequence"""
_REMOVED = "SELECT removes FROM log WHERE sequence > ? AND removes IS NOT NULL"
_POLICY = "SELECT detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence DESC LIMIT 1"
_POLICIES = "SELECT sequence, detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence"
_CORRECTIONS = "SELECT sequence, detail FROM log WHERE kind = 'correction' AND kind <> 'page' ORDER BY sequence"
_FOLLOWED = "SELECT kind, removes, detail FROM log WHERE sequence > ? AND kind <> 'policy' ORDER BY sequence"
_RETRACTION = "SELECT sequence FROM log WHERE kind = 'retraction' AND kind <> 'page' AND removes = ?"
_OF_RECORDS = f"SELECT page.record, {VERDICT_COLUMNS} FROM {VERDICTS} WHERE page.record IN ({{}})"  # noqa: S608 - the same
_LOOKUP = 256  # digests a query: 2 µs each, where one query a digest takes 13
_VERDICTS = f"SELECT {VERDICT_COLUMNS} FROM {VERDICTS} WHERE "  # noqa: S608 - our own column names


class LogReader:
    """Reads the log in `database`, whose pages live in the space `space_id`."""

    def __init__(self, database: Database, space_id: str) -> None:
        self._database = database
        self._space_id = space_id

    def last_sequence(self) -> int:
        """Return the sequence of the latest record; 0 where only the first policy is there."""
        last = self._database.first("SELECT max(sequence) FROM log")
        return 0 if last is None else int(last[0])

    def policy(self) -> dict[str, Any]:
        """Return the policy in force at the end of the log."""
        row = self._database.first(_POLICY)
        policy: dict[str, Any] = {} if row is None else json.loads(row[0])
        return policy

    def guarded_since(self) -> int | None:
        """Return the sequence of the policy from which on every rule has guards; None where the last one has none."""
        since: int | None = None
        for sequence, detail in self._database.rows(_POLICIES):
            if "guards" not in json.loads(detail)["rule"]:
                since = None
            elif since is None:
                since = sequence
        return since

    def followed_after(self, sequence: int) -> Iterator[tuple[Any, ...]]:
        """Yield (kind, removes, detail) of the pages and retractions after `sequence`, in order."""
        for rows in self._database.chunks(_FOLLOWED, sequence):
            yield from rows

    def corrections(self) -> list[Correction]:
        """Return all corrections, in their order."""
        return with_force(read_detail(*row) for row in self._database.rows(_CORRECTIONS))

    def verdicts_of_records(self, records: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Return the verdicts that the deliveries with these digests had; digests never seen are left out."""
        found: dict[bytes, Verdict] = {}
        for start in range(0, len(records), _LOOKUP):
            some = records[start : start + _LOOKUP]
            query = _OF_RECORDS.format(", ".join("?" * len(some)))
            found.update((row[0], verdict_of(row[1:], self._space_id)) for row in self._database.rows(query, *some))
        return found

    def verdict_at(self, sequence: int) -> Verdict | None:
        """Return the verdict of the page at `sequence`; None where there is no page."""
        row = self._database.first(_VERDICTS + "page.sequence = ? AND page.kind = 'page'", sequence)
        return None if row is None else verdict_of(row, self._space_id)

    def visits(self, reference: str) -> list[Verdict]:
        """Return the verdicts of all pages with this id or URL, latest first. Reads the whole log."""
        query = (
            _VERDICTS
            + "page.kind = 'page' AND ? IN (page.id, page.url, page.canonical_url) ORDER BY page.sequence DESC"
        )
        return [verdict_of(row, self._space_id) for row in self._database.rows(query, reference)]

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`; KeyError where there is none."""
        row = self._database.first("SELECT id, url FROM log WHERE sequence = ?", sequence)
        if row is None:
            raise KeyError(sequence)
        return name_of(*row)

    def retraction_of(self, target: int) -> int | None:
        """Return the sequence of the retraction that took the page at `target` out, or None."""
        row = self._database.first(_RETRACTION, target)
        return None if row is None else int(row[0])

    def entries_after(self, sequence: int) -> tuple[EntryRows, list[int]]:
        """Return the entries that records after `sequence` added, and which sequences they removed."""
        added = EntryRows.of_log(self._database.chunks(_ENTRIES, sequence), self._database.chunks(_METADATA, sequence))
        return added, [row[0] for row in self._database.rows(_REMOVED, sequence)]

    def tail(self, sequence: int) -> str:
        """Return a digest of the record at `sequence`: another one in a log that went another way."""
        row = self._database.first("SELECT * FROM log WHERE sequence = ?", sequence)
        return xxhash.xxh3_64_hexdigest(repr(row).encode("utf-8", "surrogatepass"))
