"""How a log begins."""

from dataclasses import dataclass, replace

from dedup_service.core.log_records import LayoutRecord, LogBase, LogRecord, Policy, PolicyRecord, RetractionRecord
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_head import LogHead, number_log, read_head
from dedup_service.runtime.kafka.messages.log_record import encode


@dataclass(frozen=True)
class Logged:
    """A message of a log."""

    offset: int
    value: bytes


class Log:
    """A log in memory."""

    def __init__(self, *records: LogRecord) -> None:
        self.first = 0
        self._messages = [Logged(place, encode(record)) for place, record in enumerate(records)]

    def read_one(self, offset: int) -> Logged | None:
        """Return the message at an offset, None behind the last one."""
        place = offset - self.first
        return replace(self._messages[place], offset=offset) if place < len(self._messages) else None

    def number_from(self, first: int) -> None:
        """Number the messages from `first` on."""
        self.first = first


def test_of_several_layouts_that_were_appended_at_once_the_first_one_counts() -> None:
    """Two commands that create the topics at the same time leave a log that a service can begin."""
    eight, sixteen = LayoutRecord(IndexLayout(slots=8)), LayoutRecord(IndexLayout(slots=16))
    assert read_head(Log(sixteen, eight)) == LogHead(IndexLayout(slots=16))
    first = PolicyRecord(Policy(rule_for(), Action.FLAG, "a-space", IndexLayout(slots=16)), initial=True, log="a-log")
    assert read_head(Log(sixteen, eight, eight, first)) == LogHead(IndexLayout(slots=16), first)
    assert read_head(Log(sixteen, eight, RetractionRecord("https://a.example/", "gone"))).others == 1


def test_messages_of_a_log_with_bases_are_numbered_after_the_records_of_these() -> None:
    """A reader that asks for the first policy numbers the log so that no sequence is that of a page of a base."""
    bases = LogBase("one", "a-journal", "5f", 0, 4095, 10), LogBase("two", "b-journal", "77", 4095, 1, 1)
    policy = Policy(rule_for(), Action.FLAG, "a-space", bases=bases)
    log = Log(LayoutRecord(IndexLayout()), PolicyRecord(policy, initial=True, log="a-log"))
    assert number_log(log).first == log.first == 2
    assert number_log(log).policy == read_head(log).policy
    without = Log(PolicyRecord(replace(policy, bases=()), initial=True, log="a-log"))
    assert number_log(without).first == without.first == 0
