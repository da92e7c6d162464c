"""What the resolver tells the shards: which pages of a message of the log are kept, and which entries are removed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

REMOVAL = np.dtype([("after", "<i8"), ("sequence", "<i8"), ("ordinal", "<i8")])
"""An entry that was removed, by its sequence and ordinal, as an effect of the page with the ordinal `after` or of a
record that follows it."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageOutcome:
    """The outcome of one message of the log.

    offset: of the message. first: ordinal of the first page that is decided in it, or of the next page if none is.
    kept: bool[n], of its n decided pages in their order. removed: REMOVAL[m], in the order of their removal.
    """

    offset: int
    first: int
    kept: npt.NDArray[np.bool_]
    removed: npt.NDArray[Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageOutcome):
            return NotImplemented
        return (
            (self.offset, self.first) == (other.offset, other.first)
            and np.array_equal(self.kept, other.kept)
            and np.array_equal(self.removed, other.removed)
        )

    __hash__ = None  # type: ignore[assignment]
