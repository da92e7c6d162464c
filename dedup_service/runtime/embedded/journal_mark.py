"""Marks of a journal: what a note outside of it says about how far it was.

A folder may get an older copy of its journal, or another one, while a note stays beside it. A journal has a mark if it
is the same one and has the record that was its last one then; so it has all records before, too.
"""

from pathlib import Path

from dedup_service.core.errors import StateError
from dedup_service.runtime.embedded.journal import require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.state_info import open_read_only


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
