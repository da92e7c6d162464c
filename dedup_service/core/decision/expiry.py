"""Expiry: which entries leave by count and by age, decided by the log alone.

Time is what time records of the log say, in whole minutes since 1970; no reader looks at its clock. It only
advances: a record with an earlier minute, or the same, has no effect. A page came at the latest time that the
log had before it; pages before the first time record came with that record.

Entries leave in the order of the log, earliest first, so everything that expired is described by one sequence
(`up_to`): no entry up to it is live, and none comes back. An entry is beyond the bounds of `Keep` if

- there are more live entries than `max_pages`, and it is the earliest, or
- its page came more than `max_age_minutes` before the latest time of the log.

Before a page is decided, MAX_BEFORE_PAGE entries that are beyond the bounds leave at most, and one more after it.
So a backlog, after bounds were lowered or a long silence, is spread over the pages that follow, and the verdicts
are a function of the log however it is cut into batches.
"""

from dataclasses import dataclass
from enum import StrEnum


class ExpiryReason(StrEnum):
    """Why an entry expired."""

    COUNT = "count"
    AGE = "age"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryState:
    """The state of expiry at one place of a log.

    up_to: sequence of the last entry that expired, -1 before any. times: int64[n, 2], native: minute, and the
    sequence after which it is the latest time; as far as live entries need them. by_count, by_age: entries that
    expired so far.
    """

    up_to: int = -1
    times: bytes = b""
    by_count: int = 0
    by_age: int = 0
