"""What a shard says of a message of the log.

It has the entries that a page may match, with their evidence: so the resolver compares them as if they were in its own
tables. Shard and resolver are native code on both sides (`native/src/decider/{shard,answered}.rs`); here an answer is
bytes, with the names of the entries beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """What a shard says of one message of the log.

    offset: of the message. first: ordinal of the first page that is decided in it. batches: what the shard has found,
    for each of the parts of the message whose pages are decided together. record: the entries that the record of the
    message speaks of, by their URL or their sequence; None if it can speak of none. oldest: the earliest of the shard's
    entries, if any may expire; is_all: whether it has no others. names: (id, URL) of all entries, by their sequences.
    """

    offset: int
    first: int
    batches: tuple[bytes, ...] = ()
    record: bytes | None = None
    oldest: bytes = b""
    is_all: bool = True
    names: Mapping[int, tuple[str, str]] = field(default_factory=dict)
