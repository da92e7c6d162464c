"""Which bases a state was begun with, as its journal says: for a verdict whose original is in one of them.

The log of a state with bases begins with theirs: the pages of the first base have the sequences that they have there,
those of the next one come after them, and the state's own records after all.
"""

from collections.abc import Sequence

import msgspec

BASES = "bases"
"""The name under which the header of a journal has them."""


class BaseLabel(msgspec.Struct, frozen=True):
    """A base. name: as it was given. folder: where its files are.

    log: identity of its journal. after: what is added to its sequences; records: the last of them that counts;
    commit: digest of that record.
    """

    name: str
    folder: str
    log: str
    commit: str
    after: int
    records: int


def encode_labels(labels: Sequence[BaseLabel]) -> str:
    """Return labels as text."""
    return msgspec.json.encode(labels).decode()


def decode_labels(text: str) -> tuple[BaseLabel, ...]:
    """Return the labels in a text; ValueError for another one."""
    return msgspec.json.decode(text, type=tuple[BaseLabel, ...])
