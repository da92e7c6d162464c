"""Pages for `why` in a running service: from its replica, the log, and the topics `pages` and `verdicts`.

The log has no index of URLs. The replica finds a kept page by its URL; of the other pages the latest are
remembered here (`RecentDecisions`), since these are the ones that people ask about.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.url import url_hash
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.events import Observer, PageDecided
from dedup_service.runtime.explain.correcting import CorrectionRequest, record_of
from dedup_service.runtime.explain.page_source import KnownPage, RuleInForce, UnknownPageError, references_of
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.control.operator_records import add_records
from dedup_service.runtime.kafka.explain.base_pages import BasePages, live_entry
from dedup_service.runtime.kafka.explain.page_lookup import LoggedPages, PastVerdicts
from dedup_service.runtime.kafka.service import Service
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.page_reader import PageReader

MAX_RECENT = 100_000
"""Pages that are remembered by URL: 20 MB."""

MAX_ADDED = 1000
"""Corrections added here of which author and time are remembered."""

_MAX_LOGGED = 1000


class RecentDecisions(Observer):
    """An observer that remembers the sequences of the latest pages by URL."""

    def __init__(self) -> None:
        self._decisions: OrderedDict[int, tuple[int, int | None]] = OrderedDict()
        self._lock = threading.Lock()

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Remember pages by their URLs."""
        with self._lock:
            for page in pages:
                url = url_hash(page.verdict.url)
                self._decisions[url] = (page.verdict.sequence, page.original)
                self._decisions.move_to_end(url)
            while len(self._decisions) > MAX_RECENT:
                self._decisions.popitem(last=False)

    def find(self, url: str) -> tuple[int, int | None] | None:
        """Return the sequence of the latest visit of a URL, and that of the page that its verdict names."""
        with self._lock:
            return self._decisions.get(url_hash(url))


class LivePages:
    """Pages of `service`; `recent` is one of its observers. Connects when constructed. Not thread-safe.

    reader: reads their texts; whoever made it closes it.
    """

    def __init__(
        self, service: Service, connection: Connection, topics: Topics, recent: RecentDecisions, reader: PageReader
    ) -> None:
        self._service = service
        self._recent = recent
        self._where = f"--bootstrap {connection.bootstrap}" + (topics.prefix and f" --prefix {topics.prefix}")
        self._stack = ExitStack()
        self._pages = self._stack.enter_context(closing(LoggedPages(connection, topics, reader)))
        self._verdicts = self._stack.enter_context(closing(PastVerdicts(connection, topics)))
        self._logged_ms: dict[int, int] = {}

    @property
    def space_id(self) -> str:
        """The space of the log."""
        return self._service.ask(_policy)[0]

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a URL that is kept or recent; None for no sequence.

        UnknownPageError for another URL: whether the log has it is not known here.
        """
        if isinstance(reference, str):
            sequence = self._sequence_of(reference)
            if sequence is None:
                raise UnknownPageError(
                    f"{reference[:500]} is none of the pages that this process can find by address, which are those "
                    f"kept and the last {MAX_RECENT:,} of those decided since it started; the whole log is read by "
                    f"`twinsieve why URL {self._where}`"
                )
            return self.find(sequence)
        of_base = self._of_base(reference)
        if of_base is not None:
            return of_base.find(reference)
        found = self._pages.at(reference)
        if found is None:
            return None
        page, logged_ms = found
        if len(self._logged_ms) > _MAX_LOGGED:
            self._logged_ms.clear()
        self._logged_ms[page.sequence] = logged_ms
        return page

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page` with its verdict, if the topic `verdicts` still has it; one of a base has that of the base."""
        if self._of_base(page.sequence) is not None:
            return page
        verdict = self._verdicts.find(page.sequence, page.canonical_url, self._logged_ms.get(page.sequence, 0))
        recent = self._recent.find(page.url)
        original = recent[1] if recent is not None and recent[0] == page.sequence else None
        if original is None and verdict is not None and verdict.duplicate_of_url is not None:
            original = self._sequence_of(verdict.duplicate_of_url)
        return replace(page, verdict=verdict, original=None if original == page.sequence else original)

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None if the topic `pages`, or its base, no longer has it."""
        of_base = self._of_base(page.sequence)
        return self._pages.text(page.sequence) if of_base is None else of_base.text(page)

    def held(self) -> HeldEntries:
        """Return the entries that pages are compared with now."""
        return self._service.ask(Replica.held)

    def host_text(self) -> HostText:
        """Return which sentences are hosts' own text now."""
        return self._service.ask(Replica.host_text)

    def rule(self, page: KnownPage) -> RuleInForce:  # noqa: ARG002 - the log remembers policies, the replica the last one
        """Return the rule in force now, which may not be the one that decided the page."""
        _, in_force = self._service.ask(_policy)
        return in_force

    def corrections(self) -> list[Correction]:
        """Return the corrections in force, without author, time and sequence."""
        return [Correction(sequence=None, record=record) for record in self.corrections_at()[0]]

    def corrections_at(self) -> tuple[tuple[CorrectionRecord, ...], int]:
        """Return the corrections in force, and the sequence of the log up to which they are known."""
        return self._service.ask(lambda replica: (replica.corrections, replica.sequence))

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def _of_base(self, sequence: int) -> BasePages | None:
        """Return the pages of the bases if one of them has the page at `sequence`."""
        bases = self._service.bases
        if bases is None:
            return None

        def entry(at: int) -> Entry | None:
            return self._service.ask(lambda replica: live_entry(replica, at))

        pages = BasePages(bases, self.held, self.host_text, entry)
        return pages if pages.has(sequence) else None

    def _sequence_of(self, url: str) -> int | None:
        """Return the later of the kept visit of a URL and its latest recent visit."""
        latest = [recent[0] for name in references_of(url) if (recent := self._recent.find(name)) is not None]
        kept = self._service.ask(lambda replica: [replica.sequence_of(name) for name in references_of(url)])
        return max([*latest, *(sequence for sequence in kept if sequence is not None)], default=None)


class LogCorrections:
    """Corrections of a service, as records of its log."""

    def __init__(self, pages: LivePages, connection: Connection, topics: Topics) -> None:
        self._pages = pages
        self._connection = connection
        self._topics = topics
        self._added: list[Correction] = []

    def add(self, request: CorrectionRequest) -> Correction:
        """Append a correction to the log; it is in force for every process that has read that far."""
        record = record_of(request, self._pages)
        (sequence,) = add_records(self._connection, self._topics, [record], by=request.by)
        correction = Correction(sequence=sequence, record=record, at=time.time(), by=request.by)
        self._added = [*self._added[-MAX_ADDED:], correction]
        return correction

    def all(self) -> list[Correction]:
        """Return the corrections in force, and those added here; only the latter have author and time."""
        in_force, sequence = self._pages.corrections_at()
        active, known = set(in_force), {added.record for added in self._added}
        others = [Correction(sequence=None, record=record) for record in in_force if record not in known]
        return others + [
            replace(added, in_force=added.record in active or (added.sequence or 0) > sequence) for added in self._added
        ]


def _policy(replica: Replica) -> tuple[str, RuleInForce]:
    if replica.policy is None:
        raise QueryTimeoutError("the log has no policy yet; try again once a service has started it")
    single = replica.counts["policy"] - replica.counts["policy_void"] <= 1
    return replica.policy.space_id, RuleInForce(replica.policy.rule, 0 if single else None)
