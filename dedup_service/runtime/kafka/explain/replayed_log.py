"""Pages for `why` from the log alone: the whole log is read and decided again.

A replay gives the same verdicts byte for byte, so neither the topic `verdicts` nor a running service is
needed. It costs the reading of the log, as `twinsieve replay` does, and the memory of the kept pages.
"""

from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import replace

from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.host_text import HostText
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import LogRecord, PageRecord, PolicyRecord
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.corrections import Correction, with_force
from dedup_service.runtime.explain.page_source import KnownPage, RuleInForce, references_of
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, Progress
from dedup_service.runtime.kafka.control.operator_records import (
    PolicyInForce,
    correction_of,
    policy_after,
    require_begun,
)
from dedup_service.runtime.kafka.explain.page_lookup import LoggedPages, known_page
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, numbered
from dedup_service.runtime.kafka.state.page_names import temporary_page_names
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.page_reader import PageReader

__all__ = ["ReplayedLog"]


class ReplayedLog:
    """The log up to its current end.

    wanted: URLs and sequences that `find` will be called with. read: progress callback (done, total).
    Raises ForeignLogError if no service has started the log, BrokerError if it cannot be read.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        wanted: Iterable[str | int],
        read: Progress = lambda _done, _end: None,
    ) -> None:
        self._wanted = {name for url in wanted if isinstance(url, str) for name in references_of(url)}
        self._sequences = {sequence for sequence in wanted if isinstance(sequence, int)}
        self._found: dict[str | int, KnownPage] = {}
        self._in_force: PolicyInForce | None = None
        self._rules: list[tuple[int, MatchRule]] = []
        self._corrections: list[Correction] = []
        with ExitStack() as stack:
            self._replica = Replica(stack.enter_context(temporary_page_names()))
            log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
            require_begun(connection, topics, log)
            self._take_all(log, read)
            reader = stack.enter_context(closing(PageReader()))
            self._pages = stack.enter_context(closing(LoggedPages(connection, topics, reader)))
            self._stack = stack.pop_all()

    @property
    def space_id(self) -> str:
        """The space of the log."""
        policy = self._replica.policy
        if policy is None:
            raise StateError("the log has no policy: start the service once, which writes it")
        return policy.space_id

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a wanted URL; None if there is none."""
        if isinstance(reference, str):
            return next((self._found[name] for name in references_of(reference) if name in self._found), None)
        if reference in self._found:
            return self._found[reference]
        found = self._pages.at(reference)
        return None if found is None else found[0]

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page`; it has its verdict already if it was wanted."""
        return page

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None if the topic `pages` no longer has it."""
        return self._pages.text(page.sequence)

    def held(self) -> HeldEntries:
        """Return the entries that pages are compared with at the end of the log."""
        return self._replica.held()

    def host_text(self) -> HostText:
        """Return which sentences are hosts' own text at the end of the log."""
        return self._replica.host_text()

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that decided the page."""
        since, rule = [change for change in self._rules if change[0] < page.sequence][-1]
        return RuleInForce(rule, since, changed=rule != self._rules[-1][1])

    def corrections(self) -> list[Correction]:
        """Return all corrections, in order of the log."""
        return with_force(self._corrections)

    def close(self) -> None:
        """Close connections and delete temporary files."""
        self._stack.close()

    def _take_all(self, log: LogConsumer, read: Progress) -> None:
        for messages in log.read_to_end(read, max_records=MESSAGES_AT_ONCE):
            self._take([(message, *pair) for message in messages for pair in numbered([message])])

    def _take(self, batch: list[tuple[ConsumerRecord, int, LogRecord]]) -> None:
        outcomes = self._replica.apply_many([(sequence, record) for _, sequence, record in batch])
        for (message, sequence, record), outcome in zip(batch, outcomes, strict=True):
            if isinstance(record, PageRecord):
                self._remember_wanted(record, outcome)
            elif isinstance(record, PolicyRecord):
                self._in_force = policy_after(self._in_force, sequence, record)
                if self._in_force.sequence == sequence:
                    self._rules.append((sequence, record.policy.rule))
            elif (correction := correction_of(message, record)) is not None:
                self._corrections.append(correction)

    def _remember_wanted(self, record: PageRecord, outcome: Outcome | None) -> None:
        """Remember the page if it is wanted; a repeated record of the same delivery has no outcome."""
        if outcome is None:
            return
        page, sequence = record.prepared.page, outcome.sequence
        names = self._wanted.intersection((page.url, page.canonical_url, page.id))
        if not names and sequence not in self._sequences:
            return
        known = replace(known_page(sequence, record), verdict=outcome.verdict, original=outcome.original)
        self._found.update(dict.fromkeys([*names, sequence], known))
