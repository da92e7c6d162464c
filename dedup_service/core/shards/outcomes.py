"""What the resolver tells the shards: which pages of a message of the log are kept, and which entries are removed."""

from dataclasses import dataclass
from typing import NamedTuple


class EntryRemoval(NamedTuple):
    """An entry that was removed, as an effect of the page with the ordinal `after` or of a record that follows it."""

    after: int
    sequence: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """The outcome of one message of the log.

    offset: of the message. first: ordinal of the first page that is decided in it, or of the next page if none is.
    kept: a byte for each of its decided pages in their order, 1 if it is kept, else 0. removed: in the order of their
    removal.
    """

    offset: int
    first: int
    kept: bytes
    removed: tuple[EntryRemoval, ...] = ()
