"""How a log begins: perhaps with a layout, or several of which the first counts, and then with its first policy.

That policy also says from where the messages of the log are numbered: after the records of its bases.
"""

from dataclasses import dataclass

from dedup_service.core.log_records import LayoutRecord, PolicyRecord, first_offset
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.messages.log_record import decode


@dataclass(frozen=True, slots=True)
class LogHead:
    """layout, policy: None if the log does not begin with one. others: 1 if it begins with anything else, else 0."""

    layout: IndexLayout | None = None
    policy: PolicyRecord | None = None
    others: int = 0

    @property
    def is_begun(self) -> bool:
        """Whether the log has more than layouts, so that its numbers are known."""
        return self.policy is not None or self.others > 0

    @property
    def first(self) -> int:
        """The number of the first message of the log."""
        return 0 if self.policy is None else first_offset(self.policy.policy.based_on)


def read_head(log: LogConsumer) -> LogHead:
    """Return how a log begins; raises as `LogConsumer.read_one` and `decode`."""
    layout: IndexLayout | None = None
    message = log.read_one(log.first)
    while message is not None:
        record = decode(message.value or b"")[0]
        if isinstance(record, PolicyRecord):
            return LogHead(layout, record)
        if not isinstance(record, LayoutRecord):
            return LogHead(layout, None, 1)
        layout = layout or record.layout  # of several that were appended at once, the first one counts
        message = log.read_one(message.offset + 1)
    return LogHead(layout)


def number_log(log: LogConsumer) -> LogHead:
    """Let a reader number the messages of a log as its first policy says; return how it begins.

    Raises as `read_head`.
    """
    head = read_head(log)
    log.number_from(head.first)
    return head
