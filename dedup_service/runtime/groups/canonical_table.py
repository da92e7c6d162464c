"""Which page stands for each group of a log, kept up to date page by page in an SQLite file.

A group is in the table once it has a page of a second URL, or once another page than the one that began it stands for
it; of any other group, that page does. `drain` gives what changed since the last call. So whoever applies all changes
has what `twinsieve groups` says of the log up to there, wherever it was cut into batches:

    table = CanonicalTable.open(path, log_id)
    table.add(verdict, url, original, …)     # as to any `PageSink`, in the order of the log
    changes = table.drain()
    table.commit(position)                   # all since the last commit, or nothing
    table.flush()                            # before anything that goes on from there, such as a snapshot

A policy is a key of one page (`core.groups.canonical`). So a page that comes is compared with one other, and only where
the page that stands for a group leaves, or the policy changes, are all pages of the group looked at. A change of the
policy is gone through in parts, group by group (`sweep`), since there may be millions.

The file has every page that may stand for a group, some 400 bytes each. It can be lost: the log has it all. A page that
was retracted is deleted from it, also from its bytes (secure_delete). Memory does not grow with the log.

`host_sentences` of a page is what was known of its host when the page was decided: it is in no later state of the host.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from dedup_service._native import HostText
from dedup_service.core.decision.entries import signed
from dedup_service.core.errors import StateError
from dedup_service.core.groups.canonical import EARLIEST, policy_of_log
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.url import url_hash
from dedup_service.runtime.embedded.database import WRITE_AHEAD, Database, StateDamagedError, translated
from dedup_service.runtime.groups.spool import PageSink, SpooledPage, host_share, member_of, packed, unpacked

_TABLES = """
CREATE TABLE state (
    log TEXT NOT NULL, fields TEXT NOT NULL, policy TEXT NOT NULL,
    position INTEGER NOT NULL, swept INTEGER NOT NULL, sent INTEGER NOT NULL, sent_swept INTEGER NOT NULL
);
CREATE TABLE member (
    sequence INTEGER PRIMARY KEY, grp INTEGER NOT NULL, url INTEGER NOT NULL, removed TEXT, share REAL,
    packed BLOB NOT NULL
);
CREATE INDEX copies ON member (grp, sequence) WHERE grp <> sequence;
CREATE INDEX urls ON member (url);
CREATE TABLE choice (grp INTEGER PRIMARY KEY, canonical INTEGER, shared INTEGER NOT NULL, sent INTEGER);
"""
_MEMBER = "SELECT sequence, removed, share, packed FROM member WHERE "
_OF_GROUP = f"{_MEMBER} sequence = ?1 AND grp = ?1 UNION ALL {_MEMBER} grp = ?1 AND grp <> sequence ORDER BY sequence"
_CHOOSE = (
    "INSERT INTO choice VALUES (?, ?, ?, NULL) "
    "ON CONFLICT (grp) DO UPDATE SET canonical = excluded.canonical, shared = excluded.shared"
)
_NEXT = "SELECT grp, shared FROM choice WHERE grp > ? AND grp <= ? ORDER BY grp LIMIT ?"

ALL_GROUPS = (1 << 63) - 1
"""No sweep is under way: all groups have been gone through."""


class TablePosition(NamedTuple):
    """A place of the log, and of the sweep that the message before it began.

    offset: messages of the log below it are done. swept: groups up to it are; ALL_GROUPS if no sweep is under way.
    """

    offset: int
    swept: int = ALL_GROUPS


BEGINNING = TablePosition(0, -1)


@dataclass(frozen=True, slots=True)
class CanonicalChange:
    """Another page stands for a group now. member: None: the group is not in the table any more.

    at_ms: when the record was logged that made it so, Unix milliseconds.
    """

    group: int
    member: GroupMember | None
    at_ms: int


class CanonicalTable(PageSink):
    """The table of the log with the identity `log`; made by `open`. One thread uses it.

    host_text: which sentences are hosts' own for the pages that come next; None: not known. at_ms: when their records
    were logged. Methods raise StateDamagedError if the file cannot be read, StateFullError.
    """

    def __init__(self, database: Database, log: str) -> None:
        self._database, self._log = database, log
        self._connection = database.connection
        self._changed: dict[int, int] = {}
        self._policy = EARLIEST
        self._erased = False
        self.host_text: HostText | None = None
        self.at_ms = -1
        self.position = self.sent = BEGINNING
        with translated(database.path):  # a power cut may cost the last commits: the topic has what they say
            self._connection.execute("PRAGMA synchronous = NORMAL")
        self._load()

    @classmethod
    def open(cls, path: Path, log: str) -> Self:
        """Open the table at `path`; an empty one if there is none, or if it is of another log or another version."""
        for attempt in range(2):
            try:
                database = Database(path)
                try:
                    return cls(database, log)
                except BaseException:
                    database.close()
                    raise
            except (StateDamagedError, _OtherTableError):
                if attempt:
                    raise
                cls.delete(path)
        raise AssertionError("the second attempt returns or raises")

    @staticmethod
    def delete(path: Path) -> None:
        """Delete the file, so that it is built again."""
        for name in ("", WRITE_AHEAD, "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)

    @property
    def policy(self) -> str:
        """The policy in force, as text."""
        return self._policy.text

    @property
    def pending(self) -> int:
        """How many groups may have changed since the last `drain`."""
        return len(self._changed)

    @property
    def is_committed(self) -> bool:
        """Whether nothing was done since the last commit."""
        return not self._connection.in_transaction

    @property
    def is_sweeping(self) -> bool:
        """Whether a change of the policy is being gone through; until it is, add nothing."""
        return self.position.swept != ALL_GROUPS

    def remove(self, sequence: int, removal: Removal) -> None:
        """Note why the page at `sequence` has no entry any more; the first reason stays."""
        with self._writing() as execute:
            row = execute("SELECT grp FROM member WHERE sequence = ? AND removed IS NULL", (sequence,)).fetchone()
            if row is None:
                return
            if removal.is_gone:
                execute("DELETE FROM member WHERE sequence = ?", (sequence,))
            else:
                execute("UPDATE member SET removed = ? WHERE sequence = ?", (removal.value, sequence))
            self._choose_after(row[0], sequence)

    def retract(self, canonical_url: str, sequence: int) -> None:
        """Delete all visits of a URL before `sequence`."""
        with self._writing() as execute:
            of_url = "FROM member WHERE url = ? AND sequence < ?"
            values = signed(url_hash(canonical_url)), sequence
            groups = execute(f"SELECT DISTINCT grp {of_url}", values).fetchall()
            execute(f"DELETE {of_url}", values)
            for (group,) in groups:
                self._choose_after(group, None)
        self._erased = True

    def set_policy(self, text: str) -> None:
        """Put a policy in force and begin to go through all groups; ConfigurationError if a log cannot have it."""
        policy = policy_of_log(text)
        if policy.text == self._policy.text:
            return
        with self._writing() as execute:
            execute("UPDATE state SET policy = ?", (policy.text,))
        self._policy = policy
        self.position = self.position._replace(swept=-1)

    def sweep(self, most: int, *, up_to: int = ALL_GROUPS) -> None:
        """Choose again in the next groups, at most so many, and none after `up_to`."""
        with self._writing() as execute:
            rows = execute(_NEXT, (self.position.swept, up_to, most)).fetchall()
            for group, shared in rows:
                self._choose(group, self._least(group), shared=shared)
        swept = rows[-1][0] if len(rows) == most else up_to
        self.position = self.position._replace(swept=swept)

    def drain(self) -> list[CanonicalChange]:
        """Return what changed since the last call, in order of the groups."""
        with self._writing() as execute:
            changes = []
            for group, at_ms in sorted(self._changed.items()):
                row = execute("SELECT canonical, shared, sent FROM choice WHERE grp = ?", (group,)).fetchone()
                if row is None:
                    continue
                canonical, shared, sent = row
                is_listed = canonical is not None and (shared or canonical != group)
                wanted = canonical if is_listed else None
                if wanted != sent:
                    member = None if wanted is None else self._member(wanted)
                    changes.append(CanonicalChange(group, member, at_ms))
                if is_listed:
                    execute("UPDATE choice SET sent = ? WHERE grp = ?", (wanted, group))
                elif canonical is None:
                    execute("DELETE FROM choice WHERE grp = ?", (group,))
                else:
                    execute("UPDATE choice SET sent = NULL WHERE grp = ?", (group,))
        self._changed.clear()
        return changes

    def commit(self, position: TablePosition, sent: TablePosition | None = None) -> None:
        """Make durable what was done up to `position`. sent: of the changes that were written last, if any were."""
        self.position, self.sent = position, sent or self.sent
        with self._writing() as execute:
            execute("UPDATE state SET position = ?, swept = ?, sent = ?, sent_swept = ?", (*self.position, *self.sent))
            execute("COMMIT")
        if self._erased:
            self._erased = not self._database.empty_write_ahead()

    def flush(self) -> None:
        """Have all that was committed on the disk, also after a power cut."""
        self._database.empty_write_ahead()

    def close(self) -> None:
        """Close the file; what was not committed is not there any more."""
        with suppress(StateError):
            self._database.close()

    def _take(self, group: int, page: SpooledPage, url: int, sentences: Sequence[int]) -> None:
        share = host_share(page, sentences, self.host_text)
        with self._writing() as execute:
            execute(
                "INSERT INTO member VALUES (?, ?, ?, NULL, ?, ?)",
                (page.sequence, group, signed(url), share, packed(page)),
            )
            if group != page.sequence:
                self._join(group, member_of(page, None, share), signed(url))

    def _join(self, group: int, member: GroupMember, url: int | None) -> None:
        """Compare a page that joined a group with the one that stands for it."""
        execute = self._connection.execute
        known = execute("SELECT canonical, shared FROM choice WHERE grp = ?", (group,)).fetchone()
        canonical, shared = known or (group, False)
        if not shared:
            first = execute("SELECT url FROM member WHERE sequence = ? AND grp = sequence", (group,)).fetchone()
            shared = first is None or first[0] != url
        current = None if canonical is None else self._member(canonical)
        place = self._policy.place(member)
        before = None if current is None else self._policy.place(current)
        if place is not None and self._policy.is_before(place, before):
            canonical = member.sequence
        self._choose(group, canonical, shared=shared)

    def _choose_after(self, group: int, removed: int | None) -> None:
        """Choose again in a group if the page that stood for it was removed. removed: it; None: any that is missing.

        A group without a choice has one page only.
        """
        execute = self._connection.execute
        row = execute("SELECT canonical, shared FROM choice WHERE grp = ?", (group,)).fetchone()
        if row is None:
            return
        canonical, shared = row
        if (self._member(canonical) is None) if removed is None else (canonical == removed):
            self._choose(group, self._least(group), shared=shared)

    def _choose(self, group: int, canonical: int | None, *, shared: bool) -> None:
        self._connection.execute(_CHOOSE, (group, canonical, shared))
        self._changed[group] = self.at_ms

    def _least(self, group: int) -> int | None:
        """Return the sequence of the page that stands for a group, None if none can."""
        best: int | None = None
        least: tuple[bool, Any, int] | None = None
        with closing(self._connection.execute(_OF_GROUP, (group,))) as rows:
            for row in rows:
                place = self._policy.place(_stored_member(row))
                if place is not None and self._policy.is_before(place, least):
                    best, least = row[0], place
        return best

    def _member(self, sequence: int | None) -> GroupMember | None:
        row = self._connection.execute(f"{_MEMBER} sequence = ?", (sequence,)).fetchone()
        return None if row is None else _stored_member(row)

    def _load(self) -> None:
        """Read the state of the file, or begin one; _OtherTableError if it is of another log or version."""
        fields = ",".join(SpooledPage.__struct_fields__)
        tables = self._database.first("SELECT count(*) FROM sqlite_master")
        if tables == (0,):
            with translated(self._database.path):
                self._connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
        found = self._database.rows("SELECT * FROM state")
        if not found:
            with self._writing() as execute:
                row = self._log, fields, self._policy.text, *BEGINNING, *BEGINNING
                execute("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            self.position = TablePosition(0)
            self.commit(self.position)
            return
        log, of_version, policy, position, swept, sent, sent_swept = found[0]
        if (log, of_version) != (self._log, fields):
            raise _OtherTableError
        self._policy = policy_of_log(policy)
        self.position, self.sent = TablePosition(position, swept), TablePosition(sent, sent_swept)

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Yield what executes statements, in the transaction that the next `commit` ends."""
        with translated(self._database.path):
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection.execute


class _OtherTableError(Exception):
    """The file is of another log, or of another version."""


def _stored_member(row: tuple[Any, ...]) -> GroupMember:
    _, removed, share, value = row
    return member_of(unpacked(value), removed, share)
