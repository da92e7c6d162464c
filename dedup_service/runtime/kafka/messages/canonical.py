"""Messages of the topic `canonical`: which page stands for a group.

Key: the group, its sequence in digits. Value: JSON (`runtime.groups.group_values`); null where the group is not in the
table any more. A header says up to where in the log the topic is right once the transaction of the message is
committed; all messages of a transaction have the same. So the topic itself says where its writer goes on, whatever
becomes of any other topic or file.
"""

import re
from collections.abc import Iterable

from dedup_service.core.size_limits import Header
from dedup_service.runtime.groups.canonical_table import ALL_GROUPS, CanonicalChange, TablePosition
from dedup_service.runtime.groups.group_values import canonical_value
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import CANONICAL_TYPE, event_headers

LOG_POSITION = "twinsieve.log_position"
"""Header: an offset of the log, below which all is done; behind it, after a slash, the last group that a change of the
policy has reached."""

_POSITION = re.compile(rb"(\d{1,18})(?:/(\d{1,19}|-1))?")


def canonical_message(topic: str, change: CanonicalChange, policy: str, position: TablePosition) -> Message:
    """Return the message that says which page stands for a group. position: of all that is written with it."""
    group, member = change.group, change.member
    value = None if member is None else canonical_value(group, member, policy, change.at_ms)
    place = _text(position)
    headers = (*event_headers(CANONICAL_TYPE, topic, f"{group}/{place}"), (LOG_POSITION, place.encode()))
    return Message(topic, value, str(group).encode(), headers, partition=0)


def position_in(headers: Iterable[Header]) -> TablePosition | None:
    """Return up to where in the log a message is right; None if it does not say so."""
    found = _POSITION.fullmatch(dict(headers).get(LOG_POSITION) or b"")
    if found is None:
        return None
    return TablePosition(int(found[1]), ALL_GROUPS if found[2] is None else int(found[2]))


def _text(position: TablePosition) -> str:
    return str(position.offset) if position.swept == ALL_GROUPS else f"{position.offset}/{position.swept}"
