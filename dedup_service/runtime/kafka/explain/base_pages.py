"""Pages of the bases of a log, for explanations: they are read in the journal of their base, with their texts.

Their sequences are those that they have in the log; a page of a base has the verdict that it was given there.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.replica import Replica
from dedup_service.runtime.embedded.bases import BaseJournal
from dedup_service.runtime.explain.journal_pages import JournalPages
from dedup_service.runtime.explain.page_source import KnownPage
from dedup_service.runtime.kafka.state.mounted_bases import MountedBases


@dataclass(frozen=True, slots=True, eq=False)
class BasePages:
    """The pages of `bases`. held, host_text: of the log. entry: returns the live entry at a sequence of the log."""

    bases: MountedBases
    held: Callable[[], HeldEntries]
    host_text: Callable[[], HostText]
    entry: Callable[[int], Entry | None]

    def has(self, sequence: int) -> bool:
        """Whether a base has the page at `sequence`."""
        return self.bases.folder_of(sequence) is not None

    def find(self, sequence: int) -> KnownPage | None:
        """Return the page at a sequence for which `has` is true; None if there is none."""
        with self._reading(sequence) as (pages, own):
            page = pages.find(own)
        if page is None:
            return None
        original = None if page.original is None else page.original + sequence - own
        return replace(page, entry=page.entry.at(sequence), original=original)

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page that `find` returned; None if its base no longer has it."""
        with self._reading(page.sequence) as (pages, own):
            return pages.text(replace(page, entry=page.entry.at(own)))

    @contextmanager
    def _reading(self, sequence: int) -> Iterator[tuple[JournalPages, int]]:
        """Yield the pages of the base that has a page, and its sequence there."""
        found = self.bases.folder_of(sequence)
        assert found is not None, "the caller has asked `has`"
        folder, own = found
        with TemporaryDirectory() as scratch, closing(BaseJournal(folder, Path(scratch))) as journal:
            database, own = journal.at(own)
            yield (
                JournalPages(
                    lambda: nullcontext(database),
                    journal.header,
                    self.held,
                    self.host_text,
                    lambda _own: self.entry(sequence),
                ),
                own,
            )


def live_entry(replica: Replica, sequence: int) -> Entry | None:
    """Return the entry of the page at `sequence`, None if it is not kept."""
    return replica.entry(sequence)
