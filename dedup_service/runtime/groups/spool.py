"""Pages of a log, put in order of their groups in a temporary file.

A log has its pages in the order in which they came; the copies of a page may be anywhere after it. `GroupSpool` takes
them in that order and gives them back group after group. SQLite sorts on the disk, so memory is bounded (CACHE_KIB),
whatever the number of pages. The file takes some 400 bytes a page, and 500 more with its sentences, in the folder for
temporary files (TMPDIR).

What removed a page is known later than the page: it is stored beside it and put together when it is read.
"""

import sqlite3
import tempfile
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from dedup_service._native import HostText
from dedup_service.core.dates import iso_of_day
from dedup_service.core.decision.entries import signed
from dedup_service.core.errors import TwinsieveError
from dedup_service.core.groups.canonical import EARLIEST
from dedup_service.core.groups.grouping import group_of
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.log_records import Source
from dedup_service.core.url import host_hash, url_hash
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.embedded.database import insert_rows

Progress = Callable[[int, int], None]
"""Progress callback: (records read, records of the log)."""

CACHE_KIB = 64 << 10
MAX_TITLE = 300
"""Characters of a title that are kept: a page may have one of megabytes."""

_TABLES = """
CREATE TABLE member (grp INTEGER, sequence INTEGER, url INTEGER, packed BLOB, sentences BLOB);
CREATE TABLE removal (sequence INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE retraction (url INTEGER PRIMARY KEY, sequence INTEGER NOT NULL);
"""
_INDEX = "CREATE INDEX member_group ON member (grp, sequence)"
_SORTED = (
    "SELECT grp, packed, sentences, iif(retraction.sequence > member.sequence, 'retraction', removal.reason) "
    "FROM member LEFT JOIN removal ON removal.sequence = member.sequence "
    "LEFT JOIN retraction ON retraction.url = member.url ORDER BY grp, member.sequence"
)
_RETRACT = "INSERT INTO retraction VALUES (?, ?) ON CONFLICT (url) DO UPDATE SET sequence = excluded.sequence"
_BATCH = 1024


class SpoolError(TwinsieveError):
    """The temporary file could not be written. Free space there, or name another folder in TMPDIR; then repeat it."""

    retryable = True


class SpooledPage(msgspec.Struct, frozen=True, array_like=True):
    """A page as it is stored; texts as UTF-8 with lone surrogates. `source`: topic, partition, offset."""

    sequence: int
    id: bytes
    url: bytes
    canonical_url: bytes
    kind: str
    original: int | None
    words: int | None
    body: int | None
    score: float | None
    reason: bytes | None
    title: bytes
    letters: int | None
    sentence_count: int | None
    logged_ms: int | None
    source: tuple[str, int, int] | None
    published: int | None
    text_percent: int | None


packed, unpacked = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(SpooledPage).decode


class PageSink(ABC):
    """Takes the pages of a log, in order, and what removed them."""

    def add(
        self,
        verdict: Verdict,
        canonical_url: str,
        original: int | None,
        *,
        title: str = "",
        published: int | None = None,
        text_percent: int | None = None,
        letters: int | None = None,
        sentence_count: int | None = None,
        sentences: Sequence[int] = (),
        logged_ms: int | None = None,
        source: Source | None = None,
    ) -> None:
        """Add a page; the arguments are as in `GroupMember`.

        published: its day (`core.dates`). sentences: their values, 32 bits each.
        """
        page = SpooledPage(
            verdict.sequence,
            _stored(verdict.id),
            _stored(verdict.url),
            _stored(canonical_url),
            verdict.kind.value,
            original,
            verdict.distance.words,
            verdict.distance.body,
            verdict.score,
            None if verdict.reason is None else _stored(verdict.reason),
            _stored(title[:MAX_TITLE]),
            letters,
            sentence_count,
            logged_ms,
            None if source is None else (source.topic, source.partition, source.offset),
            published,
            text_percent,
        )
        self._take(group_of(verdict, original), page, url_hash(canonical_url), sentences)

    @abstractmethod
    def remove(self, sequence: int, removal: Removal) -> None:
        """Note why the page at `sequence` has no entry any more; the first reason stays."""

    @abstractmethod
    def retract(self, canonical_url: str, sequence: int) -> None:
        """Note that all visits of a URL before `sequence` were retracted."""

    @abstractmethod
    def _take(self, group: int, page: SpooledPage, url: int, sentences: Sequence[int]) -> None:
        """Take a page of a group. url: hash of its canonical URL."""


class GroupSpool(PageSink):
    """Pages in a temporary file; made by `group_spool`. with_sentences: keep the sentences of the pages, too."""

    def __init__(self, connection: sqlite3.Connection, *, with_sentences: bool) -> None:
        self._connection = connection
        self._with_sentences = with_sentences
        self._rows: list[tuple[Any, ...]] = []
        self._removals: list[tuple[int, str]] = []
        self.pages = 0
        self.host_text: HostText | None = None
        """Which sentences are hosts' own at the end of the log; None: not known."""
        self.policy = EARLIEST.text
        """The policy of the log, which says what page stands for a group if nobody asks for another."""

    def _take(self, group: int, page: SpooledPage, url: int, sentences: Sequence[int]) -> None:
        kept = array("I", sentences).tobytes() if self._with_sentences else None
        self._rows.append((group, page.sequence, signed(url), packed(page), kept))
        self.pages += 1
        if len(self._rows) >= _BATCH:
            self._flush()

    def remove(self, sequence: int, removal: Removal) -> None:
        """Note why the page at `sequence` has no entry any more; the first reason stays."""
        self._removals.append((sequence, removal.value))
        if len(self._removals) >= _BATCH:
            self._flush()

    def retract(self, canonical_url: str, sequence: int) -> None:
        """Note that all visits of a URL before `sequence` were retracted."""
        with _room():
            self._connection.execute(_RETRACT, (signed(url_hash(canonical_url)), sequence))

    def members(self) -> Iterator[tuple[int, GroupMember]]:
        """Yield all pages with their groups, in order of group, then of sequence."""
        self._flush()
        with _room():
            self._connection.execute(_INDEX)
            for group, value, sentences, removal in self._connection.execute(_SORTED):
                page = unpacked(value)
                yield group, member_of(page, removal, host_share(page, array("I", sentences or b""), self.host_text))

    def _flush(self) -> None:
        with _room():
            insert_rows(self._connection, "INSERT INTO member", "(?, ?, ?, ?, ?)", self._rows)
            insert_rows(self._connection, "INSERT OR IGNORE INTO removal", "(?, ?)", self._removals)
        self._rows.clear()
        self._removals.clear()


@contextmanager
def group_spool(*, with_sentences: bool) -> Iterator[GroupSpool]:
    """Yield an empty spool, whose file is deleted at the end. SpoolError if there is no room for it."""
    with (
        tempfile.TemporaryDirectory(prefix="twinsieve-") as folder,
        _room(),
        closing(sqlite3.connect(Path(folder) / "groups.sqlite", isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.executescript(_TABLES)
        connection.execute("BEGIN")
        yield GroupSpool(connection, with_sentences=with_sentences)


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        folder = tempfile.gettempdir()
        raise SpoolError(
            f"the groups cannot be sorted in {folder}: {error}; free space there, or name another folder in TMPDIR"
        ) from error


def member_of(page: SpooledPage, removal: str | None, host_sentences: float | None) -> GroupMember:
    """Return a stored page as a member of its group. removal: why it has no entry any more, or None."""
    return GroupMember(
        sequence=page.sequence,
        id=_text(page.id),
        url=_text(page.url),
        canonical_url=_text(page.canonical_url),
        kind=VerdictKind(page.kind),
        original=page.original,
        distance=Distance(page.words, page.body),
        score=page.score,
        reason=None if page.reason is None else _text(page.reason),
        title=_text(page.title),
        date=iso_of_day(page.published),
        text_percent=page.text_percent,
        letters=page.letters,
        sentences=page.sentence_count,
        host_sentences=host_sentences,
        logged_ms=page.logged_ms,
        source=None if page.source is None else Source(*page.source),
        removed=None if removal is None else Removal(removal),
    )


def host_share(page: SpooledPage, sentences: Sequence[int], host_text: HostText | None) -> float | None:
    """Return the share of a page's sentences that are its host's own, None if that is not known."""
    if host_text is None or not sentences:
        return None
    return fmean(host_text.common(host_hash(_text(page.canonical_url)), sentences))


def _stored(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")
