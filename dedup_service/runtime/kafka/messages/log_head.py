"""How a log begins: perhaps with a layout, or several of which the first counts, and then with its first policy."""

from dataclasses import dataclass
from typing import Any, Protocol

from dedup_service.core.log_records import LayoutRecord, PolicyRecord
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.kafka.messages.log_record import decode

__all__ = ["LogHead", "read_head"]


class _Log(Protocol):
    def read_one(self, offset: int) -> Any | None: ...


@dataclass(frozen=True, slots=True)
class LogHead:
    """layout, policy: None if the log does not begin with one. others: 1 if it begins with anything else, else 0."""

    layout: IndexLayout | None = None
    policy: PolicyRecord | None = None
    others: int = 0


def read_head(log: _Log, *, earlier: bool = False) -> LogHead:
    """Return how a log begins; raises as `LogConsumer.read_one` and `decode`, whose option `earlier` is."""
    layout: IndexLayout | None = None
    message = log.read_one(0)
    while message is not None:
        record = decode(message.value or b"", earlier=earlier)[0]
        if isinstance(record, PolicyRecord):
            return LogHead(layout, record)
        if not isinstance(record, LayoutRecord):
            return LogHead(layout, None, 1)
        layout = layout or record.layout  # of several that were appended at once, the first one counts
        message = log.read_one(message.offset + 1)
    return LogHead(layout)
