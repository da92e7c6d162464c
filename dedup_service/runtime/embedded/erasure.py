"""Take-down: erase the text, the title and the URL of a page from a state folder, for good.

The row of the page stays, because a restore repeats its effect. What goes is what people can read:

- of all visits of the page's canonical URL, and visits that named it as canonical: id, URLs, title, text, date, and
  the digest of the delivery: given again, it is decided again. The host of a Web address stays in the place of the URL,
  because the hosts' own text was learned from it. So do fingerprints and hashes, until the row is deleted (`deletion`);
- of all other pages, what they say of it: its name in the reason of a verdict, a claimed or a replaced URL. Of its
  copies, those that a guard refused included, also text, title and date, which say the same; a copy keeps its own
  address;
- the entry, if any visit of that URL has one, whichever visit was named;
- the evidence of all of them, in the journal and in `pages/`. A restore from before would need it, so this comes last,
  after a commit of `pages/`; the table `erasure` has what is to be done if a crash comes before.

The first are found by the index of names; the second takes one pass over the log, by what `meta` has noted of the
first until it is done: so a kill between the two leaves nothing that the next opening does not find. SQLite overwrites
what is deleted with zeros (`database`), and `Journal` empties the write-ahead file. `pages/` has neither text nor
names.

Not erased: corrections, with the URLs that a person wrote; the reason of a retraction; whatever is outside the folder.
"""

import json
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dedup_service.core.decision.guard_state import Copy
from dedup_service.core.url import DEFAULT_PORTS
from dedup_service.runtime.embedded.journal_reader import Text, name_hash, name_of, stored_text, text_of
from dedup_service.runtime.embedded.texts import TextStore

ERASED = "[erased]"
"""What stands for the name of a page that was taken down."""

_NAMES = "SELECT id, url, canonical_url FROM log WHERE sequence = ? AND kind = 'page'"
_VISITS = (
    "SELECT page.sequence FROM name CROSS JOIN log AS page "
    "WHERE name.hash = ? AND page.sequence = name.sequence AND ifnull(page.canonical_url, page.url) = ?"
)
_BLANK = (
    "UPDATE log SET record = NULL, id = NULL, url = ?, canonical_url = NULL, claimed_url = NULL, title = NULL, "
    "original_id = NULL, original_url = iif(original_url IS NULL, NULL, ?), published = NULL, text_percent = NULL "
    "WHERE sequence = ?"
)
_MENTIONING = (
    "SELECT sequence, reason, claimed_url, repeats, original_url, verdict, detail FROM log WHERE kind = 'page' "
    "AND (reason IS NOT NULL OR claimed_url IS NOT NULL OR repeats IS NOT NULL)"
)
_FORGET = "UPDATE log SET record = NULL WHERE sequence = ?"
_SET_REASON = "UPDATE log SET reason = ? WHERE sequence = ?"
_SET_CLAIM = "UPDATE log SET claimed_url = ? WHERE sequence = ?"
_SET_REPLACED = "UPDATE log SET original_id = NULL, original_url = ? WHERE sequence = ?"
_SET_TITLE = "UPDATE log SET title = ?, published = NULL, text_percent = NULL WHERE sequence = ?"
_ERASE_LATER = "INSERT OR IGNORE INTO erasure VALUES (?)"
_NOTE = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_NOTED = "FROM meta WHERE name GLOB 'erasing-*'"
_ROWS = 10_000
_WORD = re.compile(r"(?<!\S)[^\s,;]*")
_END = re.compile(r"[\s,;]|$")
_SHORT = 8  # an id as short as that is looked for at the end of a reason alone, where near misses name a page


@dataclass(frozen=True, slots=True)
class Erased:
    """Pages that were erased. visits: their sequences. names: their ids and URLs. text_bytes: change of the texts."""

    visits: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    text_bytes: int = 0


def erase_visits(connection: sqlite3.Connection, texts: TextStore, sequence: int) -> Erased:
    """Erase the page at `sequence` and all visits of its canonical URL, in the open transaction.

    Notes which they were, until `take_noted`.
    """
    erased = _blank(connection, texts, _visits_of(connection, sequence))
    note = json.dumps({"visits": sorted(erased.visits), "names": sorted(erased.names)})
    connection.execute(_NOTE, (f"erasing-{sequence}", note))
    return erased


def forget_deliveries(connection: sqlite3.Connection, sequence: int) -> None:
    """Forget which deliveries the visits of the page at `sequence` were: given again, they are decided again."""
    connection.executemany(_FORGET, [(visit,) for visit in _visits_of(connection, sequence)])


def take_noted(connection: sqlite3.Connection) -> Erased:
    """Return all that was erased since the last call, and forget it, in the open transaction."""
    notes = [json.loads(note) for (note,) in connection.execute(f"SELECT value {_NOTED}")]
    connection.execute(f"DELETE {_NOTED}")
    visits = frozenset(visit for note in notes for visit in note["visits"])
    return Erased(visits, frozenset(name for note in notes for name in note["names"]))


def erase_mentions(connection: sqlite3.Connection, texts: TextStore, erased: Erased) -> Erased:
    """Erase what other pages say of erased ones, in the open transaction, and visits by claim; read the whole log."""
    stored = {stored_text(name) for name in erased.names}
    mentions = Mentions(erased.names)
    changes: list[tuple[str, Text, int]] = []
    by_claim: set[int] = set()
    copies: set[int] = set()
    rows = connection.execute(_MENTIONING)
    while some := rows.fetchmany(_ROWS):
        for sequence, reason, claimed, repeats, replaced, verdict, detail in some:
            original = Copy.unpack(detail).original if repeats is None and detail is not None else repeats
            if claimed in stored:
                changes.append((_SET_CLAIM, None, sequence))
                if verdict in {"unchanged", "updated"} and repeats in erased.visits:
                    by_claim.add(sequence)
            if original in erased.visits:
                copies.add(sequence)
                changes.append((_SET_TITLE, None, sequence))
            if replaced in stored:
                changes.append((_SET_REPLACED, ERASED, sequence))
            if reason and (cleaned := mentions.erased_from(text_of(reason))) != text_of(reason):
                changes.append((_SET_REASON, stored_text(cleaned), sequence))
    for statement, value, sequence in changes:
        connection.execute(statement, (value, sequence))
    of_copies = sum(texts.drop(copy) for copy in sorted(copies))
    connection.executemany(_ERASE_LATER, [(copy,) for copy in copies])
    visits = _blank(connection, texts, by_claim - erased.visits)
    return Erased(visits.visits, visits.names, visits.text_bytes + of_copies)


def erase_evidence(connection: sqlite3.Connection) -> int:
    """Erase the evidence of all pages in the table `erasure`, in the open transaction; return of how many."""
    erased = connection.execute("DELETE FROM evidence WHERE sequence IN (SELECT sequence FROM erasure)").rowcount
    connection.execute("DELETE FROM erasure")
    return erased


def _visits_of(connection: sqlite3.Connection, sequence: int) -> set[int]:
    """Return the sequences of the page at `sequence` and of all visits of its canonical URL; none if it is no page."""
    row = connection.execute(_NAMES, (sequence,)).fetchone()
    if row is None:
        return set()
    canonical = _canonical(row)
    found = connection.execute(_VISITS, (name_hash(canonical), stored_text(canonical))).fetchall()
    return {sequence, *(visit for (visit,) in found)}


def _blank(connection: sqlite3.Connection, texts: TextStore, visits: Iterable[int]) -> Erased:
    """Erase names, titles and texts of pages, and what the index of names has of them."""
    names: set[str] = set()
    text_bytes = 0
    for visit in (visits := sorted(visits)):
        row = connection.execute(_NAMES, (visit,)).fetchone()
        own = {*name_of(row[0], row[1]), _canonical(row)}
        hashes = [(name_hash(name), visit) for name in own]
        connection.executemany("DELETE FROM name WHERE hash = ? AND sequence = ?", hashes)
        connection.execute(_BLANK, (stored_text(_address_of_host(_canonical(row), visit)), ERASED, visit))
        connection.execute(_ERASE_LATER, (visit,))
        text_bytes += texts.drop(visit)
        names |= own
    return Erased(frozenset(visits), frozenset(names), text_bytes)


def _canonical(row: tuple[Any, ...]) -> str:
    return text_of(row[1] if row[2] is None else row[2])


def _address_of_host(canonical_url: str, sequence: int) -> str:
    """Return an address that no page has, since it has a fragment; of a Web address with the same `host_hash`.

    What else is an address, such as `doc://name`, may be a name of the page from its first letter on.
    """
    scheme, _, rest = canonical_url.partition("://")
    host = f"{scheme}://{rest.partition('/')[0]}/" if scheme in DEFAULT_PORTS else ""
    return f"{host}#erased-{sequence}"


class Mentions:
    """Names to erase from reasons, where they are whole words: one look-up for each word, however many names there are.

    >>> Mentions({"https://a.test/1"}).erased_from("figures differ https://a.test/1, https://a.test/12")
    'figures differ [erased], https://a.test/12'
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(filter(None, names))
        self._lengths: dict[str, list[int]] = {}  # of the names that begin with a word, the longest first
        for length, word in sorted({(len(name), _END.split(name, 1)[0]) for name in self._names}, reverse=True):
            self._lengths.setdefault(word, []).append(length)

    def erased_from(self, reason: str) -> str:
        """Return the reason with `ERASED` in the place of each name; of several at one place, the longest counts."""
        parts: list[str] = []
        done = 0
        for word in _WORD.finditer(reason):
            at = word.start()
            ends = (at + length for length in self._lengths.get(word[0], ()) if at >= done)
            end = next((end for end in ends if self._is_name(reason, at, end)), None)
            if end is not None:
                parts += reason[done:at], ERASED
                done = end
        return "".join([*parts, reason[done:]])

    def _is_name(self, reason: str, start: int, end: int) -> bool:
        if end > len(reason) or reason[start:end] not in self._names:
            return False
        return start > 0 and end == len(reason) if end - start <= _SHORT else _END.match(reason, end) is not None
