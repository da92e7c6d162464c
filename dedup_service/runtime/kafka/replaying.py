"""The log once more, under another policy or in another space: what the verdicts would have been.

How: every record of the log, in its order, goes through a replica of its own. Policy records are changed to what is
wished; in another space each page is prepared again from the content that `pages` still has. Retractions and
corrections hold where they stand, so the answer is that of a service that had begun so.
Invariants: the log that is replayed is only read. What cannot be prepared again, because `pages` let it go, is left out
and counted; a record that stands in the log twice counts once.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.core.changelog import LogRecord, PageRecord, Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.replica import Replica
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.clients import LogReader
from dedup_service.runtime.kafka.pages_again import PagesAgain
from dedup_service.runtime.kafka.people import Read
from dedup_service.runtime.kafka.wire.log_record import decode
from dedup_service.runtime.kafka.wire.page import PageMessage
from dedup_service.runtime.kafka.wire.verdict import verdict_value
from dedup_service.runtime.preparation import Answer, BadRecord, Preparer

__all__ = ["Replayed", "Sink", "VerdictLines", "Wish", "prepared_again", "replayed_log"]

AT_ONCE = 500
WAIT_S = 0.5
BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Wish:
    """What shall be other than it was; None leaves it. log: identity of the log that is made, None for none."""

    rule: MatchRule | None = None
    action: Action | None = None
    space_id: str | None = None
    log: str | None = None

    def applied_to(self, record: PolicyRecord) -> PolicyRecord:
        """Return the policy record as wished."""
        old = record.policy
        new = Policy(self.rule or old.rule, self.action or old.action, self.space_id or old.space_id)
        return replace(record, policy=new, log=record.log and (self.log or record.log))


@dataclass(frozen=True, slots=True)
class Replayed:
    """A record of the log as it is replayed. sequence: the one it has there. page: its content, if that was read."""

    sequence: int
    record: LogRecord
    page: ConsumerRecord | None = None


@dataclass(slots=True)
class Missing:
    """Pages that cannot be prepared again. first: the first of them."""

    count: int = 0
    first: Source | None = field(default=None)


class Sink(Protocol):
    """Who takes what is replayed, in order."""

    def take(self, batch: Sequence[Replayed]) -> None:
        """Decide a batch, and pass its verdicts on."""
        ...


def replayed_log(log: LogReader, wish: Wish, read: Read) -> Iterator[list[Replayed]]:
    """Yield what the log has now, in batches, with the policies as wished. read: is told how far it is."""
    end, begun = log.end(), False
    while (position := log.position) < end:
        read(position, end)
        batch = []
        for at in log.poll(WAIT_S, AT_ONCE):
            record = decode(at.value or b"")
            if isinstance(record, PolicyRecord):
                if record.initial and begun:
                    continue  # void: another service began the log first
                record, begun = wish.applied_to(record), True
            batch.append(Replayed(at.offset, record))
        yield batch
    read(end, end)


def prepared_again(
    batches: Iterable[Sequence[Replayed]], pages: PagesAgain, preparer: Preparer, space_id: str, missing: Missing
) -> Iterator[list[Replayed]]:
    """Yield the batches with each page prepared anew, in `space_id`; those that are gone are counted in `missing`."""
    under_way: deque[tuple[list[Replayed], Future[list[Answer]]]] = deque()
    for part in _with_content(batches, pages, missing):
        messages = [PageMessage(page.topic, page.partition, page.offset, page.value) for page in _pages(part)]
        under_way.append((part, preparer.submit(messages)))
        while len(under_way) > preparer.depth:
            yield _answered(*under_way.popleft(), space_id)
    while under_way:
        yield _answered(*under_way.popleft(), space_id)


class VerdictLines:
    """A sink that writes the verdicts as lines, as the topic `verdicts` would have them."""

    def __init__(self, write: "Write", replica: Replica) -> None:
        self._write = write
        self._replica = replica

    def take(self, batch: Sequence[Replayed]) -> None:
        """Decide a batch and write its lines."""
        outcomes = (self._replica.apply(item.sequence, item.record) for item in batch)
        decided = ((outcome.verdict, outcome.source) for outcome in outcomes if outcome is not None)
        self._write([verdict_value(verdict, source) + b"\n" for verdict, source in decided if verdict is not None])


class Write(Protocol):
    """Writes some lines whole, or raises."""

    def __call__(self, chunks: Sequence[bytes]) -> None:
        """Write `chunks`."""
        ...


def _with_content(
    batches: Iterable[Sequence[Replayed]], pages: PagesAgain, missing: Missing
) -> Iterator[list[Replayed]]:
    """Yield the records with the content of their pages, cut so that no part holds much."""
    for batch in batches:
        part: list[Replayed] = []
        size = 0
        for item in batch:
            source = item.record.source if isinstance(item.record, PageRecord | RejectedRecord) else None
            if source is None:
                part.append(item)
                continue
            page = pages.find(source)
            if page is None:
                if pages.is_gone(source):  # else the log has it twice
                    missing.count += 1
                    missing.first = missing.first or source
                continue
            part.append(replace(item, page=page))
            size += len(page.value or b"")
            if size >= BATCH_BYTES:
                yield part
                part, size = [], 0
        yield part


def _pages(part: Sequence[Replayed]) -> list[ConsumerRecord]:
    return [item.page for item in part if item.page is not None]


def _answered(part: Sequence[Replayed], answers: "Future[list[Answer]]", space_id: str) -> list[Replayed]:
    given = iter(answers.result())
    return [item if item.page is None else _anew(item, next(given), space_id) for item in part]


def _anew(item: Replayed, answer: Answer, space_id: str) -> Replayed:
    assert item.page is not None
    source = Source(item.page.topic, item.page.partition, item.page.offset)
    if isinstance(answer, BadRecord):
        return replace(item, record=RejectedRecord(source, answer.problem))
    return replace(item, record=PageRecord(source, answer, space_id))
