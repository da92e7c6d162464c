"""A log in memory, for what is decided by its records and not by who holds them: committed records and gaps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import encode
from tests.runtime.embedded.prepared import SPACE_ID, prepared


@dataclass(frozen=True)
class Stored:
    """A record as a reader of the log gives it."""

    offset: int
    value: bytes


class ListLog:
    """Records at every second offset; the others are markers of transactions, the last one included."""

    def __init__(self, records: Sequence[LogRecord]) -> None:
        self.records = [Stored(2 * at, encode(record)) for at, record in enumerate(records)]
        self.position = 0
        self.read_singly: list[int] = []

    def seek(self, offset: int) -> None:
        self.position = offset

    def poll(self, timeout_s: float, max_records: int) -> list[Stored]:
        found = [record for record in self.records if record.offset >= self.position][:max_records]
        self.position = found[-1].offset + 1 if found and found[-1] is not self.records[-1] else self.end()
        return found

    def read_to_end(self, *, max_records: int, end: int) -> Iterator[list[Stored]]:
        while self.position < end:
            yield self.poll(0.0, max_records)

    def end(self) -> int:
        return 2 * len(self.records)

    def read_one(self, offset: int) -> Stored | None:
        self.read_singly.append(offset)
        return next((record for record in self.records if record.offset >= offset), None)


def first(log: str = "a-log", rule: str = "body") -> PolicyRecord:
    """The record that a log begins with."""
    return PolicyRecord(Policy(rule_for(rule), Action.FLAG, SPACE_ID), initial=True, log=log)


def page(offset: int, url: str, story: int, version: int = 0) -> PageRecord:
    """A page at an offset of partition 0 of `pages`."""
    return PageRecord(Source("pages", 0, offset), prepared(url, story, version=version), SPACE_ID)
