"""Why, in a process of the service that runs: from its replica, the log, and the topics `pages` and `verdicts`.

The log has no index of addresses. A page that is kept is found by its address in the replica; of the others the latest
are remembered here, since those are what people ask about.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.url import url_hash
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.events import NullObserver, PageDecided
from dedup_service.runtime.explain.correcting import CorrectionRequest, record_of
from dedup_service.runtime.explain.page_source import KnownPage, RuleInForce, references_of
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.control.operator_records import add_records
from dedup_service.runtime.kafka.explain.page_lookup import LoggedPages, PastVerdicts
from dedup_service.runtime.kafka.service import Service
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError
from dedup_service.runtime.kafka.topics import Topics

__all__ = ["LivePages", "LogCorrections", "Recent"]

REMEMBERED = 100_000
"""Pages by their address: 20 MB."""

TOLD = 1000


class Recent(NullObserver):
    """An observer that remembers where the latest pages stand in the log. size: how many."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._at: OrderedDict[int, tuple[int, int | None]] = OrderedDict()
        self._lock = threading.Lock()

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Remember pages by their addresses."""
        with self._lock:
            for page in pages:
                address = url_hash(page.verdict.url)
                self._at[address] = (page.verdict.sequence, page.original)
                self._at.move_to_end(address)
            while len(self._at) > self._size:
                self._at.popitem(last=False)

    def find(self, url: str) -> tuple[int, int | None] | None:
        """Return the sequence of the latest visit of an address, and of the page that its verdict names."""
        with self._lock:
            return self._at.get(url_hash(url))


class LivePages:
    """Pages of `service`, whose observer `recent` is. One thread uses it; connected when it is made."""

    def __init__(self, service: Service, connection: Connection, topics: Topics, recent: Recent) -> None:
        self._service = service
        self._recent = recent
        self._stack = ExitStack()
        self._pages = self._stack.enter_context(closing(LoggedPages(connection, topics)))
        self._verdicts = self._stack.enter_context(closing(PastVerdicts(connection, topics)))
        self._logged_ms: dict[int, int] = {}

    @property
    def space_id(self) -> str:
        """The space of the log."""
        return self._service.ask(_policy)[0]

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of an address that is kept, or was judged lately."""
        if isinstance(reference, str):
            sequence = self._sequence_of(reference)
            return None if sequence is None else self.find(sequence)
        found = self._pages.at(reference)
        if found is None:
            return None
        page, logged_ms = found
        if len(self._logged_ms) > TOLD:
            self._logged_ms.clear()
        self._logged_ms[page.sequence] = logged_ms
        return page

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page` with its verdict, where the topic `verdicts` has it still."""
        verdict = self._verdicts.find(page.sequence, page.canonical_url, self._logged_ms.get(page.sequence, 0))
        recent = self._recent.find(page.url)
        original = recent[1] if recent is not None and recent[0] == page.sequence else None
        if original is None and verdict is not None and verdict.duplicate_of_url is not None:
            original = self._sequence_of(verdict.duplicate_of_url)
        return replace(page, verdict=verdict, original=None if original == page.sequence else original)

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None where the topic `pages` keeps it no longer."""
        return self._pages.text(page.sequence)

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with now."""
        return self._service.ask(Replica.held)

    def rule(self, page: KnownPage) -> RuleInForce:  # noqa: ARG002 - the log remembers policies, the replica the last one
        """Return the rule in force now; whether it was when the page was decided is not known."""
        _, in_force = self._service.ask(_policy)
        return in_force

    def corrections(self) -> list[Correction]:
        """Return the corrections in force, without who, when and where in the log."""
        return [Correction(sequence=None, record=record) for record in self.corrections_at()[0]]

    def corrections_at(self) -> tuple[tuple[CorrectionRecord, ...], int]:
        """Return the corrections in force, and up to which record of the log."""
        return self._service.ask(lambda replica: (replica.corrections, replica.sequence))

    def close(self) -> None:
        """Let go of the connections."""
        self._stack.close()

    def _sequence_of(self, url: str) -> int | None:
        """Return the later of the kept visit of an address and the latest one that was judged lately."""
        found = [recent[0] for name in references_of(url) if (recent := self._recent.find(name)) is not None]
        kept = self._service.ask(lambda replica: [replica.sequence_of(name) for name in references_of(url)])
        return max([*found, *(sequence for sequence in kept if sequence is not None)], default=None)


class LogCorrections:
    """Corrections of a service: records of its log. clock: Unix seconds."""

    def __init__(
        self, pages: LivePages, connection: Connection, topics: Topics, clock: Callable[[], float] = time.time
    ) -> None:
        self._pages = pages
        self._connection = connection
        self._topics = topics
        self._clock = clock
        self._told: list[Correction] = []

    def add(self, said: CorrectionRequest) -> Correction:
        """Append a correction to the log, in force for every process once it has read that far."""
        record = record_of(said, self._pages)
        (sequence,) = add_records(self._connection, self._topics, [record], by=said.by)
        correction = Correction(sequence=sequence, record=record, at=self._clock(), by=said.by)
        self._told = [*self._told[-TOLD:], correction]
        return correction

    def all(self) -> list[Correction]:
        """Return those in force, and with who and when those that this process was told."""
        in_force, sequence = self._pages.corrections_at()
        holding, told = set(in_force), {at.record for at in self._told}
        others = [Correction(sequence=None, record=record) for record in in_force if record not in told]
        return others + [
            replace(at, in_force=at.record in holding or (at.sequence or 0) > sequence) for at in self._told
        ]


def _policy(replica: Replica) -> tuple[str, RuleInForce]:
    if replica.policy is None:
        raise QueryTimeoutError("the log has no policy yet; try again once a service has begun it")
    single = replica.counts["policy"] - replica.counts["policy_void"] <= 1
    return replica.policy.space_id, RuleInForce(replica.policy.rule, 0 if single else None)
