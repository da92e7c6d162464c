"""Rows of the log: how a page is written as one, and queries that read them.

`page_row` and `verdict_of` convert a page to a row and back; `JournalReader` has the queries, none of which changes
anything.

Invariant: the verdict that is read equals the one that was returned to the caller, field by field, whatever its strings
contain. A string with a lone surrogate, which SQLite's UTF-8 cannot hold, is stored as bytes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import xxhash

from dedup_service._native import Entry
from dedup_service.core.dates import day_of
from dedup_service.core.decision.bases import base_of
from dedup_service.core.decision.decider import Decision
from dedup_service.core.decision.entries import page_flags, signed, unsigned
from dedup_service.core.decision.guard_state import Copy
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.embedded.base_labels import BASES, BaseLabel, decode_labels
from dedup_service.runtime.embedded.corrections import Correction, read_detail, with_force
from dedup_service.runtime.embedded.database import Database, StateDamagedError

_COLUMNS = (
    "sequence, record, id, url, canonical_url, claimed_url, title, verdict, repeats, distance_words, distance_body, "
    "score, reason, words, body, body_hash, text_hash, entry, removes, detail, "
    "original_id, original_url, published, text_percent"
)
_VALUES = "?, " * _COLUMNS.count(",") + "?"
INSERT_PAGE = f"INSERT INTO log (kind, {_COLUMNS})", f"('page', {_VALUES})"
INSERT_EVIDENCE = "INSERT INTO evidence", "(?, ?, ?)"
INSERT_NAME = "INSERT OR IGNORE INTO name", "(?, ?)"
"""The row of a name: `name_hash`, sequence."""
VERDICT_COLUMNS = (
    "page.sequence, page.id, page.url, page.verdict, "
    "iif(page.original_url IS NULL, kept.id, page.original_id), ifnull(page.original_url, kept.url), "
    "page.distance_words, page.distance_body, page.score, page.reason, page.repeats"
)
VERDICTS = "log AS page LEFT JOIN log AS kept ON kept.sequence = page.repeats"
"""The tables of VERDICT_COLUMNS: a page, and the page that it repeats."""
_NAMED = f"name CROSS JOIN {VERDICTS}"  # CROSS JOIN: SQLite keeps this order, so the index of names comes first

_KINDS = frozenset(kind.value for kind in VerdictKind)

_INDEXED = Entry(0, None, None, None, 0).flags
"""Flag of an entry that the block indexes have it."""

Text = str | bytes | None
"""The stored form of a string."""


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """What a decider needs of a record to make its effects again.

    prepared: of a page, without title and text; None for another record. kept: whether the page has an entry.
    copy: what a page that matched added to the guard state. keep: the bounds of expiry of a policy.
    """

    sequence: int
    removes: int | None = None
    prepared: PreparedPage | None = None
    kept: bool = False
    copy: Copy | None = None
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class DecidedPage:
    """A page with its decision and the digest of its delivery id (None if the caller gave none)."""

    prepared: PreparedPage
    decision: Decision
    delivery: bytes | None


def page_row(decided: DecidedPage) -> tuple[Any, ...]:
    """Return the row of `decided`, in the order of INSERT_PAGE."""
    page, verdict = decided.prepared.page, decided.decision.verdict
    copy = decided.decision.copy
    fingerprint, url = decided.prepared.fingerprint, page.url
    percent = page.text_percent
    return (
        verdict.sequence,
        decided.delivery,
        None if page.id == url else stored_text(page.id),
        stored_text(url),
        None if page.canonical_url == url else stored_text(page.canonical_url),
        stored_text(page.claimed_url),
        stored_text(page.title),
        verdict.kind.value,
        decided.decision.original,
        verdict.distance.words,
        verdict.distance.body,
        verdict.score,
        stored_text(verdict.reason),
        signed(fingerprint.words),
        signed(fingerprint.body),
        signed(decided.prepared.body_hash),
        signed(decided.prepared.text_hash),
        page_flags(decided.prepared) if decided.decision.kept else None,
        decided.decision.replaces,
        None if copy is None else copy.pack(),
        *_replaced(decided),
        day_of(page.date),
        percent if percent is not None and 0 <= percent <= 100 else None,
    )


def evidence_row(decided: DecidedPage) -> tuple[int, bytes | None, bytes | None]:
    """Return the row of the evidence of `decided`, in the order of INSERT_EVIDENCE."""
    prepared = decided.prepared
    return decided.decision.verdict.sequence, prepared.evidence or None, prepared.keys or None


def name_rows(decided: DecidedPage) -> list[tuple[int, int]]:
    """Return the rows of the names under which `decided` is looked up, in the order of INSERT_NAME."""
    page, sequence = decided.prepared.page, decided.decision.verdict.sequence
    return [(name_hash(name), sequence) for name in {page.id, page.url, page.canonical_url}]


def name_hash(name: str) -> int:
    """Return what the index of names has of an id or URL: 32 bits, so that an entry takes about 12 bytes."""
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass")) & 0xFFFF_FFFF


def _replaced(decided: DecidedPage) -> tuple[Text, Text]:
    """Return the stored id and URL of a page whose row may be missing: whose entry `decided` replaced, or of a base.

    Else NULLs.
    """
    verdict = decided.decision.verdict
    if verdict.duplicate_of is None or (decided.decision.replaces is None and verdict.duplicate_of_base is None):
        return None, None
    url = verdict.duplicate_of_url
    return None if verdict.duplicate_of == url else stored_text(verdict.duplicate_of), stored_text(url)


def verdict_of(row: tuple[Any, ...], space_id: str, bases: Sequence[BaseLabel] = ()) -> Verdict:
    """Return the verdict in a row of VERDICT_COLUMNS; StateDamagedError if it is none that was written.

    bases: of the journal.
    """
    sequence, page_id, url, kind, original, original_url, words, body, score, reason, repeats = row
    base = base_of(bases, repeats)
    if kind not in _KINDS:
        raise StateDamagedError(
            f"the journal has a verdict {kind!r} at record {sequence}: it is damaged; restore the state folder from a "
            "copy, or start a new one"
        )
    own_id, own_url = name_of(page_id, url)
    original_id, original_page_url = (None, None) if original_url is None else name_of(original, original_url)
    return Verdict(
        sequence=sequence,
        id=own_id,
        url=own_url,
        kind=VerdictKind(kind),
        space=space_id,
        duplicate_of=original_id,
        duplicate_of_url=original_page_url,
        distance=Distance(words=words, body=body),
        score=score,
        reason=None if reason is None else text_of(reason),
        duplicate_of_base=None if base is None else base.name,
    )


def name_of(page_id: Text, url: Text) -> tuple[str, str]:
    """Return (id, url) as the caller gave them, from their stored form."""
    known_url = text_of(url)
    return (known_url if page_id is None else text_of(page_id)), known_url


def stored_text(text: str | None) -> Text:
    """Return the stored form of a string, by which it can be compared with stored ones."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of(text: Text) -> str:
    """Return a string from its stored form; "" for NULL."""
    return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text or ""


def keep_of(policy: Mapping[str, Any]) -> Keep:
    """Return the bounds of expiry of a stored policy; one without them keeps all."""
    return Keep.from_dict(policy.get("keep", {}))


def _record_of(row: tuple[Any, ...]) -> JournalRecord:
    sequence, kind, removes, detail, entry, url, canonical_url, claimed_url = row[:8]
    if kind == "policy":
        return JournalRecord(sequence, keep=keep_of(json.loads(detail)))
    if kind != "page":
        return JournalRecord(sequence, removes)
    words, body, body_hash, text_hash, evidence, keys = row[8:]
    address = text_of(url)
    page = Page(
        url=address,
        canonical_url=address if canonical_url is None else text_of(canonical_url),
        id=address,
        claimed_url=None if claimed_url is None else text_of(claimed_url),
    )
    prepared = PreparedPage(
        page,
        Fingerprint(unsigned(words), unsigned(body)),
        unsigned(body_hash),
        evidence or b"",
        None if entry is None or entry & _INDEXED else "not judged",
        unsigned(text_hash),
        keys or b"",
    )
    copy = None if detail is None else Copy.unpack(detail)
    return JournalRecord(sequence, removes, prepared, entry is not None, copy)


_AFTER = """
    SELECT log.sequence, kind, removes, detail, entry, url, canonical_url, claimed_url, words, body, body_hash,
           text_hash, evidence.evidence, keys
    FROM log LEFT JOIN evidence ON evidence.sequence = log.sequence WHERE log.sequence > ? ORDER BY log.sequence"""
_POLICY = "SELECT detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence DESC LIMIT 1"
_FIRST_POLICY = "SELECT sequence FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence LIMIT 1"
_POLICIES = "SELECT sequence, detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence"
_CORRECTIONS = "SELECT sequence, detail FROM log WHERE kind = 'correction' AND kind <> 'page' ORDER BY sequence"
_RETRACTION = "SELECT sequence FROM log WHERE removes = ? AND kind = 'retraction'"
_RETRACTIONS = "SELECT removes, sequence FROM log WHERE kind = 'retraction' AND kind <> 'page'"
_GOES_ON = "SELECT sequence FROM log WHERE sequence > ? AND sequence <= ? AND kind <> 'retraction' LIMIT 1"
_RETRACTION_NAMING = (
    "SELECT log.sequence FROM name CROSS JOIN log ON log.sequence = name.sequence "
    "WHERE name.hash = ? AND log.kind = 'retraction' ORDER BY name.sequence DESC LIMIT 1"
)
_TAIL = "SELECT sequence, kind, verdict, words, body, body_hash, text_hash, entry, removes FROM log WHERE sequence = ?"
_VISITS = (
    f"SELECT {VERDICT_COLUMNS} FROM {_NAMED} WHERE name.hash = ? AND page.sequence = name.sequence "  # noqa: S608 - the same
    "AND ? IN (page.id, page.url, page.canonical_url) ORDER BY name.sequence DESC"
)
_TIMES = "SELECT sequence, minute FROM time WHERE sequence >= ? ORDER BY sequence"
_EXPIRED_BY = "SELECT expired_up_to FROM time WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1"
_COUNTER = "SELECT value FROM counter WHERE name = ?"
_OF_DELIVERIES = f"SELECT page.record, {VERDICT_COLUMNS} FROM {VERDICTS} WHERE page.record IN ({{}})"  # noqa: S608 - the same
_LOOKUP = 256  # digests in one query: 2 µs each; one query for each digest takes 13 µs
_VERDICTS = f"SELECT {VERDICT_COLUMNS} FROM {VERDICTS} WHERE "  # noqa: S608 - our own column names


class JournalReader:
    """Queries on the log in `database`, whose pages belong to the space `space_id`."""

    def __init__(self, database: Database, space_id: str) -> None:
        self._database = database
        self._space_id = space_id

    @cached_property
    def bases(self) -> tuple[BaseLabel, ...]:
        """The bases that the journal was begun with."""
        row = self._database.first("SELECT value FROM meta WHERE name = ?", BASES)
        try:
            return () if row is None else decode_labels(row[0])
        except ValueError as error:
            raise StateDamagedError(
                f"{self._database.path} does not say which bases it has: {error}; restore it from a copy"
            ) from error

    def last_sequence(self) -> int:
        """Return the sequence of the last record; 0 if there is only the first policy."""
        last = self._database.first("SELECT max(sequence) FROM log")
        return 0 if last is None else int(last[0])

    def policy(self) -> dict[str, Any]:
        """Return the policy in force at the end of the log."""
        row = self._database.first(_POLICY)
        policy: dict[str, Any] = {} if row is None else json.loads(row[0])
        return policy

    def first_policy(self) -> int:
        """Return the sequence of the first policy, with which the journal began."""
        row = self._database.first(_FIRST_POLICY)
        return 0 if row is None else int(row[0])

    def guarded_since(self) -> int | None:
        """Return the sequence of the policy since which every rule has guards; None if the last one has none."""
        since: int | None = None
        for sequence, detail in self._database.rows(_POLICIES):
            if "guards" not in json.loads(detail)["rule"]:
                since = None
            elif since is None:
                since = sequence
        return since

    def rule_since(self) -> int:
        """Return the sequence of the policy since which the rule of the last one is in force."""
        since, rule = 0, None
        for sequence, detail in self._database.rows(_POLICIES):
            if (own := json.loads(detail)["rule"]) != rule:
                since, rule = sequence, own
        return since

    def keep_at(self, sequence: int) -> Keep:
        """Return the bounds of expiry that were in force at `sequence`."""
        policies = self._database.rows(_POLICIES)
        details = [detail for since, detail in policies if since <= sequence]
        return keep_of(json.loads(details[-1])) if details else KEEP_ALL

    def times_from(self, sequence: int) -> Iterator[tuple[int, int]]:
        """Yield the time records from `sequence` on: the last record before each, and the minute."""
        for rows in self._database.chunks(_TIMES, sequence):
            yield from rows

    def expired_by(self, sequence: int) -> int:
        """Return up to where entries had expired by a record at or before `sequence`; 0 if none had."""
        row = self._database.first(_EXPIRED_BY, sequence)
        return 0 if row is None else int(row[0])

    def counter(self, name: str) -> int:
        """Return a counter of the journal; 0 if it never changed."""
        row = self._database.first(_COUNTER, name)
        return 0 if row is None else int(row[0])

    def records_after(self, sequence: int) -> Iterator["JournalRecord"]:
        """Yield all records after `sequence`, in order."""
        for rows in self._database.chunks(_AFTER, sequence):
            yield from map(_record_of, rows)

    def corrections(self) -> list[Correction]:
        """Return all corrections, in the order of the log."""
        return with_force(read_detail(*row) for row in self._database.rows(_CORRECTIONS))

    def verdicts_of_deliveries(self, digests: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Return verdicts by digest of the delivery id; digests that were never seen are left out."""
        verdicts: dict[bytes, Verdict] = {}
        for start in range(0, len(digests), _LOOKUP):
            some = digests[start : start + _LOOKUP]
            rows = self._database.rows(_OF_DELIVERIES.format(", ".join("?" * len(some))), *some)
            verdicts.update((row[0], self._verdict_of(row[1:])) for row in rows)
        return verdicts

    def verdict_at(self, sequence: int) -> Verdict | None:
        """Return the verdict of the page at `sequence`; None if there is no page."""
        row = self._database.first(_VERDICTS + "page.sequence = ? AND page.kind = 'page'", sequence)
        return None if row is None else self._verdict_of(row)

    def _verdict_of(self, row: tuple[Any, ...]) -> Verdict:
        return verdict_of(row, self._space_id, self.bases)

    def visits(self, reference: str) -> list[Verdict]:
        """Return the verdicts of all pages with this id or URL that are in the log, latest first."""
        rows = self._database.rows(_VISITS, name_hash(reference), stored_text(reference))
        return [self._verdict_of(row) for row in rows]

    def latest_visit(self, reference: str) -> Verdict | None:
        """Return the verdict of the latest page with this id or URL; None if the log has none."""
        row = self._database.first(_VISITS + " LIMIT 1", name_hash(reference), stored_text(reference))
        return None if row is None else self._verdict_of(row)

    def deleted_up_to(self) -> int:
        """Return the sequence up to which records of pages without an entry were deleted; 0 if none were."""
        return self.counter("deleted_up_to")

    def erasing(self) -> list[int]:
        """Return the sequences of pages whose evidence is to be erased."""
        return [row[0] for row in self._database.rows("SELECT sequence FROM erasure ORDER BY sequence")]

    def canonical_url(self, sequence: int) -> str | None:
        """Return the canonical URL of the page at `sequence`; None if no page is there."""
        row = self._database.first(
            "SELECT ifnull(canonical_url, url) FROM log WHERE sequence = ? AND kind = 'page'", sequence
        )
        return None if row is None else text_of(row[0])

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`, which a verdict names; StateDamagedError if there is none."""
        row = self._database.first("SELECT id, url FROM log WHERE sequence = ?", sequence)
        if row is None:
            raise StateDamagedError(
                f"{self._database.path} has no record {sequence} of a kept page: "
                "restore the state folder from a copy, or start a new one"
            )
        return name_of(*row)

    def retraction_of(self, target: int) -> int | None:
        """Return the sequence of the retraction that removed the page at `target`, or None."""
        row = self._database.first(_RETRACTION, target)
        return None if row is None else int(row[0])

    def retractions(self) -> list[tuple[int, int]]:
        """Return all retractions: the page that was removed, and the record that did it."""
        return self._database.rows(_RETRACTIONS)

    def goes_on(self, first: int, last: int) -> bool:
        """Return whether a record after `first`, up to `last`, is no retraction."""
        return self._database.first(_GOES_ON, first, last) is not None

    def retraction_naming(self, reference: str) -> int | None:
        """Return the sequence of the latest retraction of a page with this id or URL, which may be erased, or None."""
        row = self._database.first(_RETRACTION_NAMING, name_hash(reference))
        return None if row is None else int(row[0])

    def tail(self, sequence: int) -> str:
        """Return a digest of the record at `sequence`, which tells a log from a copy that continued differently.

        It has nothing that a take-down erases.
        """
        row = self._database.first(_TAIL, sequence)
        return xxhash.xxh3_64_hexdigest(repr(row).encode("utf-8", "surrogatepass"))
