"""What guards count, as a snapshot has it, and what they count of each match."""

import struct
from dataclasses import astuple, dataclass
from typing import NamedTuple, Self

RECENT = 1000
"""Pages whose marks are remembered."""

_COPY = struct.Struct("<q4I")


class Copy(NamedTuple):
    """A page that matched the kept page at sequence `original`.

    The rest are the low 32 bits of hashes, which is more than a sketch uses. title, text: 0 if they are the
    kept page's.
    """

    original: int
    url: int
    host: int
    title: int
    text: int

    def pack(self) -> bytes:
        """Return the copy as 24 bytes, as the journal stores it."""
        return _COPY.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the copy that `pack` wrote."""
        return cls(*_COPY.unpack(packed))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """What guards count. Snapshots store the fields by name, so the names are a file format.

    groups: 72 bytes for each cluster of copies. decided: pages. recent: marks of the last ones, uint8[RECENT], a ring.
    before: suspicious pages in the latest whole thousand, -1 before there is one. learned: thousands learned. usual:
    suspicious pages in a thousand, in 1/2¹⁶.
    """

    groups: bytes = b""
    decided: int = 0
    recent: bytes = bytes(RECENT)
    before: int = -1
    learned: int = 0
    usual: int = 0

    def fields(self) -> tuple[bytes, int, bytes, int, int, int]:
        """Return the fields in their order."""
        return astuple(self)

    @classmethod
    def of(cls, fields: tuple[bytes, int, bytes, int, int, int]) -> Self:
        """Return the state of what `fields` returned."""
        groups, decided, recent, before, learned, usual = fields
        return cls(groups=groups, decided=decided, recent=recent, before=before, learned=learned, usual=usual)
