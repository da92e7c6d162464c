"""A log in memory, with committed records and the gaps that transaction markers leave."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import encode, log_messages
from tests.runtime.embedded.prepared import SPACE_ID, prepared


@dataclass(frozen=True)
class Stored:
    """A record as a reader of the log returns it."""

    offset: int
    value: bytes


class ListLog:
    """Messages at every second offset; the other offsets, including the last, are transaction markers.

    together: whether pages that follow each other are in one message. first: what the first message is numbered.
    """

    def __init__(self, records: Sequence[LogRecord], *, together: bool = False, first: int = 0) -> None:
        values = [encode(record) for record in records]
        if together:
            values = [message.value or b"" for message, _ in log_messages("fingerprints", records)]
        self.first = first
        self.records = [Stored(first + 2 * number, value) for number, value in enumerate(values)]
        self.position = first
        self.read_singly: list[int] = []

    def seek(self, offset: int) -> None:
        self.position = max(self.first, offset)

    def poll(self, timeout_s: float, max_records: int) -> list[Stored]:
        records = [record for record in self.records if record.offset >= self.position][:max_records]
        self.position = records[-1].offset + 1 if records and records[-1] is not self.records[-1] else self.end()
        return records

    def read_to_end(self, *, max_records: int, end: int) -> Iterator[list[Stored]]:
        while self.position < end:
            yield self.poll(0.0, max_records)

    def end(self) -> int:
        return self.first + 2 * len(self.records)

    def read_one(self, offset: int) -> Stored | None:
        self.read_singly.append(offset)
        return next((record for record in self.records if record.offset >= offset), None)


def first(log: str = "a-log", rule: str | None = "body") -> PolicyRecord:
    """The first record of a log, with a short window."""
    layout = IndexLayout(slots=2, window=3)
    return PolicyRecord(Policy(rule_for(rule), Action.FLAG, SPACE_ID, layout), initial=True, log=log)


def page(offset: int, url: str, story: int, version: int = 0) -> PageRecord:
    """A page at an offset of partition 0 of `pages`."""
    return PageRecord(Source("pages", 0, offset), prepared(url, story, version=version), SPACE_ID)
