"""An embedded journal as the source of explanations: of an open filter, or of a state folder.

A filter in memory is locked for one look-up at a time, each of which uses an index.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.bases import base_of
from dedup_service.core.decision.entries import unsigned
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import host_hash, url_hash
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.bases import BaseJournal
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.embedded.folder import FolderKind, refuse_other_kind
from dedup_service.runtime.embedded.journal import Header, require_header
from dedup_service.runtime.embedded.journal_reader import JournalReader, name_of, text_of
from dedup_service.runtime.embedded.state_view import state_view
from dedup_service.runtime.embedded.texts import TextStore
from dedup_service.runtime.explain.page_source import KnownPage, RuleInForce, references_of

MIN_LETTERS = 64
"""Minimum number of letters to judge a page, in a state whose space does not say."""

_PAGE = (
    "SELECT id, url, canonical_url, title, words, body, body_hash, text_hash, evidence.evidence, keys, repeats "
    "FROM log LEFT JOIN evidence ON evidence.sequence = log.sequence WHERE log.sequence = ? AND kind = 'page'"
)
_POLICIES = "SELECT sequence, detail FROM log WHERE kind = 'policy' AND kind <> 'page' ORDER BY sequence"

Reading = Callable[[], AbstractContextManager[Database]]


class JournalPages:
    """Pages of the journal that `reading` opens.

    header: of the journal. held: returns the kept pages. host_text: returns what is known of the hosts' own text.
    """

    def __init__(
        self,
        reading: Reading,
        header: Header,
        held: Callable[[], HeldEntries],
        host_text: Callable[[], HostText],
        entry: Callable[[int], Entry | None],
    ) -> None:
        self._reading = reading
        self._held = held
        self._host_text = host_text
        self._live_entry = entry
        self._min_letters = int(header.space.get("least_letters", MIN_LETTERS))
        self.space_id = header.space_id

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a URL or id; None if there is none."""
        sequence = reference if isinstance(reference, int) else self._latest(reference)
        if sequence is None or not 0 < sequence < 1 << 63:
            return None
        with self._having(sequence) as (database, own, after):
            row = database.first(_PAGE, own)
            verdict = None if after is not None else JournalReader(database, self.space_id).verdict_at(sequence)
        if row is None:
            return None
        page_id, url, canonical, title, *_, original = row
        own_id, own_url = name_of(page_id, url)
        canonical_url = own_url if canonical is None else text_of(canonical)
        return KnownPage(
            id=own_id,
            url=own_url,
            canonical_url=canonical_url,
            title=text_of(title),
            entry=self._entry(sequence, canonical_url, row, verdict),
            verdict=verdict,
            original=original if original is None or after is None else original + after,
        )

    @contextmanager
    def _having(self, sequence: int) -> Iterator[tuple[Database, int, int | None]]:
        """Yield the journal that has the record at a sequence: this one, or that of a base.

        With it, its sequence there, and the records before those of the base; None for this journal.
        """
        with self._reading() as database:
            label = base_of(JournalReader(database, self.space_id).bases, sequence)
            if label is None:
                yield database, sequence, None
                return
        with TemporaryDirectory() as scratch, closing(BaseJournal(Path(label.folder), Path(scratch))) as journal:
            of_base, own = journal.at(sequence - label.after)
            yield of_base, own, sequence - own

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page`: it has its verdict already."""
        return page

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None if it is no longer kept."""
        with self._having(page.sequence) as (database, own, _):
            return TextStore(database.connection, 0, 0).get(own)

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with."""
        return self._held()

    def host_text(self) -> HostText:
        """Return which sentences are hosts' own text now."""
        return self._host_text()

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that was in force when `page` was decided."""
        with self._reading() as database:
            policies = database.rows(_POLICIES)
            is_of_base = base_of(JournalReader(database, self.space_id).bases, page.sequence) is not None
        earlier = policies[:1] if is_of_base else [policy for policy in policies if policy[0] < page.sequence]
        if not earlier:
            raise StateError(f"the log has a page at {page.sequence} before any policy: restore it from a copy")
        since, detail = earlier[-1]
        return RuleInForce(_rule_in(detail), since, changed=_rule_in(policies[-1][1]) != _rule_in(detail))

    def corrections(self) -> list[Correction]:
        """Return all corrections, in the order of the log."""
        with self._reading() as database:
            return JournalReader(database, self.space_id).corrections()

    def _latest(self, reference: str) -> int | None:
        with self._reading() as database:
            log = JournalReader(database, self.space_id)
            visits = [log.latest_visit(name) for name in references_of(reference)]
        return max((visit.sequence for visit in visits if visit is not None), default=None)

    def _entry(self, sequence: int, canonical_url: str, row: tuple[Any, ...], verdict: Verdict | None) -> Entry:
        words, body, body_hash, text_hash, evidence, keys = row[4:10]
        kept = self._live_entry(sequence) if evidence is None and keys is None else None
        packed = (evidence or b"") if kept is None else kept.evidence
        # A page with enough letters may still have too little variety; its verdict says that it was not judged.
        unjudged = verdict is not None and verdict.kind is VerdictKind.UNDECIDED and verdict.guard is None
        return Entry(
            sequence,
            unsigned(words),
            unsigned(body),
            unsigned(body_hash),
            url_hash(canonical_url),
            indexed=not unjudged and Evidence(packed).letters >= self._min_letters,
            evidence=packed,
            text_hash=unsigned(text_hash),
            host=host_hash(canonical_url),
            keys=(keys or b"") if kept is None else kept.keys,
            settled=kept is not None and kept.settled,
        )


def live_pages(dedup: NearDuplicateFilter) -> JournalPages:
    """Return the pages of an open filter; reading them does not block it."""
    view = view_of(dedup)
    with view.reading() as database:
        header = require_header(database.connection, database.path)
    return JournalPages(view.reading, header, view.held, view.host_text, view.entry)


@contextmanager
def state_pages(folder: str | Path) -> Iterator[JournalPages]:
    """Yield the pages of the state `folder` at this moment; another process may be writing to it.

    StateError if the folder has no state, ForeignStateError if it is of another version or of the Kafka service.
    """
    path = Path(folder)
    refuse_other_kind(path, FolderKind.EMBEDDED)
    with state_view(path) as view:

        @contextmanager
        def reading() -> Iterator[Database]:
            yield view.database

        yield JournalPages(reading, view.header, view.held, view.host_text, view.entry)


def _rule_in(detail: str) -> MatchRule:
    return MatchRule.from_dict(json.loads(detail)["rule"])
