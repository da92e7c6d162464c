"""The words of a text and the pieces between them, as places in it: most of them are never needed as strings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.text.normalise import code_points


@dataclass(frozen=True)
class Segments:
    """n segments of a text, one after the other. points: uint32[m], its code points. ends: int64[n], of each."""

    points: npt.NDArray[np.uint32]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, strings: Sequence[str]) -> Self:
        """Return strings as segments."""
        sizes = np.fromiter(map(len, strings), np.int64, len(strings))
        return cls(code_points("".join(strings)), np.cumsum(sizes))

    @classmethod
    def joined(cls, parts: Iterable["Segments"]) -> "Segments":
        """Return the segments of several parts, in their order."""
        several = [part for part in parts if len(part)]
        if len(several) <= 1:
            return several[0] if several else NO_SEGMENTS
        ends, start = [], 0
        for part in several:
            ends.append(part.ends + start)
            start += len(part.points)
        return cls(np.concatenate([part.points for part in several]), np.concatenate(ends))

    @cached_property
    def text(self) -> str:
        """The text."""
        return str(self.points.data, "utf-32-le", "surrogatepass")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int) -> str:
        return self.text[self.start_of(place) : int(self.ends[place])]

    def strings(self) -> list[str]:
        """Return all segments."""
        text, ends = self.text, self.ends.tolist()
        return [text[start:end] for start, end in pairwise([0, *ends])]

    def start_of(self, place: int) -> int:
        """Return where a segment begins in the text."""
        return int(self.ends[place - 1]) if place else 0


NO_SEGMENTS = Segments(np.empty(0, np.uint32), np.empty(0, np.int64))
"""Those of an empty text."""


class PageSegments(NamedTuple):
    """The segments of n pages, of each those of the body, then those of the title.

    starts: int64[n + 1], the first segment of each page, and the end of the last one. bodies: int64[n], the first
    segment of each title.
    """

    segments: Segments
    starts: npt.NDArray[np.int64]
    bodies: npt.NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[Segments]) -> "PageSegments":
        """Return the pages of parts: body and title, body and title and so on."""
        ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        return cls(Segments.joined(parts), np.concatenate([np.zeros(1, np.int64), ends[1::2]]), ends[::2].copy())

    def parts(self) -> Iterator[Segments]:
        """Yield the segments of each body and title: what these are `joined` from."""
        segments, starts, bodies = self
        bounds = np.concatenate([np.stack([starts[:-1], bodies], axis=1).ravel(), starts[-1:]])
        for start, end in pairwise(bounds.tolist()):
            begin = segments.start_of(start)
            ends = segments.ends[start:end]
            yield Segments(segments.points[begin : segments.start_of(end)], ends - begin)
