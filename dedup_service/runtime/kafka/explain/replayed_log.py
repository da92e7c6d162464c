"""Pages for `why` from the log alone: the whole log is read and decided again.

A replay gives the same verdicts byte for byte, so neither the topic `verdicts` nor a running service is
needed. It costs the reading of the log, as `twinsieve replay` does, and the memory of the kept pages. Pages of the
bases that a log goes on from are read there.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

from dedup_service._native import HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.replica import Outcome
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
from dedup_service.runtime.kafka.explain.base_pages import BasePages, live_entry
from dedup_service.runtime.kafka.explain.page_lookup import LoggedPages, known_page
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, numbered
from dedup_service.runtime.kafka.state.temporary_replica import TemporaryReplica, temporary_replica
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.page_reader import PageReader


class ReplayedLog:
    """The log up to its current end.

    wanted: URLs and sequences that `find` will be called with. read: progress callback (done, total). bases: where
    those of the log are, by name. Raises ForeignLogError if no service has started the log, BrokerError if it cannot be
    read, and as `temporary_replica`.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        wanted: Iterable[str | int],
        read: Progress = lambda _done, _end: None,
        bases: Mapping[str, str] | None = None,
    ) -> None:
        self._wanted = {name for url in wanted if isinstance(url, str) for name in references_of(url)}
        self._sequences = {sequence for sequence in wanted if isinstance(sequence, int)}
        self._found: dict[str | int, KnownPage] = {}
        self._in_force: PolicyInForce | None = None
        self._rules: list[tuple[int, MatchRule]] = []
        self._corrections: list[Correction] = []
        with ExitStack() as stack:
            log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
            require_begun(connection, topics, log)
            reading = stack.enter_context(temporary_replica(log, bases or {}))
            self._replica = reading.replica
            self._bases: BasePages | None = None
            if reading.bases is not None:
                self._bases = BasePages(reading.bases, self.held, self.host_text, partial(live_entry, reading.replica))
            self._take_all(log, read, reading)
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
        """Return the page at a sequence, or the latest visit of a wanted URL; None if there is none.

        Of a base, the kept visit of a URL is found.
        """
        if isinstance(reference, str):
            names = references_of(reference)
            return next((self._found[name] for name in names if name in self._found), None) or self._in_base(names)
        if reference in self._found:
            return self._found[reference]
        if self._bases is not None and self._bases.has(reference):
            return self._bases.find(reference)
        found = self._pages.at(reference)
        return None if found is None else found[0]

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page`; it has its verdict already if it was wanted, or is in a base."""
        return page

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None if the topic `pages`, or its base, no longer has it."""
        if self._bases is not None and self._bases.has(page.sequence):
            return self._bases.text(page)
        return self._pages.text(page.sequence)

    def held(self) -> HeldEntries:
        """Return the entries that pages are compared with at the end of the log."""
        return self._replica.held()

    def host_text(self) -> HostText:
        """Return which sentences are hosts' own text at the end of the log."""
        return self._replica.host_text()

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that decided the page; of a page in a base, the first one of the log."""
        since, rule = ([change for change in self._rules if change[0] < page.sequence] or self._rules[:1])[-1]
        return RuleInForce(rule, since, changed=rule != self._rules[-1][1])

    def corrections(self) -> list[Correction]:
        """Return all corrections, in order of the log, behind those of its bases that are in force."""
        own = {correction.record for correction in self._corrections}
        of_bases = [Correction(sequence=None, record=one) for one in self._replica.corrections if one not in own]
        return of_bases + with_force(self._corrections)

    def close(self) -> None:
        """Close connections and delete temporary files."""
        self._stack.close()

    def _take_all(self, log: LogConsumer, read: Progress, reading: TemporaryReplica) -> None:
        for messages in log.read_to_end(read, max_records=MESSAGES_AT_ONCE):
            records = [(message, *pair) for message in messages for pair in numbered([message])]
            self._take(records)
            reading.step(len(records))

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

    def _in_base(self, names: Iterable[str]) -> KnownPage | None:
        """Return the kept visit of an address if a base has it."""
        if self._bases is None:
            return None
        kept = (self._replica.sequence_of(name) for name in names)
        sequence = next((one for one in kept if one is not None and self._bases.has(one)), None)
        return None if sequence is None else self._bases.find(sequence)

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
