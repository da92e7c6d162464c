"""How a log begins."""

from dataclasses import dataclass

from dedup_service.core.log_records import LayoutRecord, LogRecord, Policy, PolicyRecord, RetractionRecord
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_head import LogHead, read_head
from dedup_service.runtime.kafka.messages.log_record import encode


@dataclass(frozen=True)
class Logged:
    """A message of a log."""

    offset: int
    value: bytes


class Log:
    """A log in memory."""

    def __init__(self, *records: LogRecord) -> None:
        self._messages = [Logged(place, encode(record)) for place, record in enumerate(records)]

    def read_one(self, offset: int) -> Logged | None:
        """Return the message at an offset, None behind the last one."""
        return self._messages[offset] if offset < len(self._messages) else None


def test_of_several_layouts_that_were_appended_at_once_the_first_one_counts() -> None:
    """Two commands that create the topics at the same time leave a log that a service can begin."""
    eight, sixteen = LayoutRecord(IndexLayout(slots=8)), LayoutRecord(IndexLayout(slots=16))
    assert read_head(Log(sixteen, eight)) == LogHead(IndexLayout(slots=16))
    first = PolicyRecord(Policy(rule_for(), Action.FLAG, "a-space", IndexLayout(slots=16)), initial=True, log="a-log")
    assert read_head(Log(sixteen, eight, eight, first)) == LogHead(IndexLayout(slots=16), first)
    assert read_head(Log(sixteen, eight, RetractionRecord("https://a.example/", "gone"))).others == 1
