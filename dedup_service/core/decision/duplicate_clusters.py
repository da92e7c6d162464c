"""What is remembered of a kept page's copies: about how many pages, hosts and other titles they have.

48 bytes a group (three sketches of `core.decision.hyperloglog`), some 155 with its place in the dictionary. Bounded:
where there
are too many groups, those that grew least recently are forgotten, a quarter at once; what collapses grows all the time.
Invariant: the same growth gives the same groups, from the beginning or from bytes in between.
"""

import struct
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

from dedup_service.core.decision.hyperloglog import NOTHING, SKETCH_BYTES, estimate, with_value

__all__ = ["Copy", "DuplicateClusters", "Sizes"]

MAX_CLUSTERS = 1 << 17
"""20 MB of memory. A group is forgotten after 100,000 others have grown since it grew: a million pages or so."""

_NEW = (NOTHING, NOTHING, NOTHING)
_ROW = np.dtype([("of", "<i8"), ("sketches", f"V{3 * SKETCH_BYTES}")])


class Copy(NamedTuple):
    """A page that matched the kept page at sequence `of`.

    url, host: hashes, unsigned 64-bit. title: the same of its title; None where it is the kept page's, more or less.
    """

    original: int
    url: int
    host: int
    title: int | None

    def pack(self) -> bytes:
        """Return the copy as bytes, 24 or 32."""
        return struct.pack(
            f"<q{len(self) - 1 - (self.title is None)}Q", *(value for value in self if value is not None)
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the copy that `pack` wrote."""
        original, url, host, *title = struct.unpack(f"<q{len(packed) // 8 - 1}Q", packed)
        return cls(original, url, host, title[0] if title else None)


class Sizes(NamedTuple):
    """About how many different pages, hosts and other titles the copies of a kept page have."""

    pages: int
    hosts: int
    titles: int


class DuplicateClusters:
    """DuplicateClusters by the sequence of their kept page. packed: of `pack`. most: groups that are remembered."""

    def __init__(self, packed: bytes = b"", maximum: int = MAX_CLUSTERS) -> None:
        self._maximum = maximum
        rows = np.frombuffer(packed, _ROW)
        self._groups: dict[int, bytes] = dict(zip(rows["of"].tolist(), rows["sketches"].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._groups)

    def grow(self, copy: Copy) -> Sizes:
        """Add a copy to its group, and return how large that is now."""
        old = self._groups.pop(copy.original, None)  # and back at the end: the last that grew
        pages, hosts, titles = _NEW if old is None else (old[:16], old[16:32], old[32:])
        pages, hosts = with_value(pages, copy.url), with_value(hosts, copy.host)
        titles = titles if copy.title is None else with_value(titles, copy.title)
        self._groups[copy.original] = pages + hosts + titles
        if len(self._groups) > self._maximum:
            for stale in list(islice(self._groups, self._maximum // 4 or 1)):
                del self._groups[stale]
        return Sizes(estimate(pages), estimate(hosts), estimate(titles))

    def drop(self, original: int) -> None:
        """Forget the group of a kept page that left, where it has one."""
        self._groups.pop(original, None)

    def pack(self) -> bytes:
        """Return all groups as bytes, 56 each."""
        rows = np.empty(len(self._groups), _ROW)
        rows["of"] = np.fromiter(self._groups, np.int64, len(self._groups))
        rows["sketches"] = np.frombuffer(b"".join(self._groups.values()), _ROW["sketches"])
        return rows.tobytes()
