"""The folded titles and bodies of pages with their code points, which are made once for all steps.

`PageTexts` has many pages in one array, so that a compiled loop takes a batch of them in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import long_kernel
from dedup_service.core.text.normalise import code_points

NOTHING = np.empty(0, np.uint32)
"""The code points of an empty text."""


class PageText(NamedTuple):
    """A title and a body. points: uint32[n], the code points of the body, then of the title."""

    title: str
    body: str
    points: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, title: str, body: str) -> Self:
        """Return a title and a body with their code points."""
        return cls(title, body, code_points(body + title))

    @property
    def title_points(self) -> npt.NDArray[np.uint32]:
        """The code points of the title."""
        return self.points[len(self.body) :]

    @property
    def body_points(self) -> npt.NDArray[np.uint32]:
        """The code points of the body."""
        return self.points[: len(self.body)]


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The titles and bodies of n pages.

    points: uint32[m], the code points of a body, then of its title, page after page. starts: int64[n + 1], where each
    page begins, and the end of the last one. bodies: int64[n], where each body ends and the title begins.
    """

    points: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]
    bodies: npt.NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[PageText]) -> Self:
        """Return pages together."""
        return cls.joined([part for text in texts for part in (text.body_points, text.title_points)])

    @classmethod
    def joined(cls, parts: Sequence[npt.NDArray[np.uint32]]) -> Self:
        """Return the pages of parts: body and title, body and title and so on, uint32 each."""
        ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        points = np.concatenate(parts) if parts else NOTHING
        return cls(points, np.concatenate([np.zeros(1, np.int64), ends[1::2]]), ends[::2].copy())

    @classmethod
    def at_places(cls, points: npt.NDArray[np.uint32], places: npt.NDArray[np.int64]) -> Self:
        """Return the pages whose bodies begin and end at the places, and their titles: int64[n, 4], of points."""
        return cls(*gathered(points, places))

    def __len__(self) -> int:
        return len(self.bodies)

    def page(self, number: int) -> PageText:
        """Return one of the pages."""
        start, body, end = self.starts[number], self.bodies[number], self.starts[number + 1]
        points = self.points[start:end]
        text = str(points.data, "utf-32-le", "surrogatepass")
        return PageText(text[body - start :], text[: body - start], points)

    def chosen(self, numbers: Sequence[int]) -> "PageTexts":
        """Return some of the pages, in ascending order; all of them are `self`."""
        if len(numbers) == len(self):
            return self
        parts = []
        for number in numbers:
            parts.append(self.points[self.starts[number] : self.bodies[number]])
            parts.append(self.points[self.bodies[number] : self.starts[number + 1]])
        return PageTexts.joined(parts)


@long_kernel
def gathered(
    points: npt.NDArray[np.uint32], places: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the fields of `PageTexts.at_places`."""
    size = 0
    for page in range(len(places)):
        size += places[page, 1] - places[page, 0] + places[page, 3] - places[page, 2]
    copied = np.empty(size, np.uint32)
    starts, bodies = np.zeros(len(places) + 1, np.int64), np.empty(len(places), np.int64)
    at = 0
    for page in range(len(places)):
        for part in range(2):
            begin, end = places[page, 2 * part], places[page, 2 * part + 1]
            copied[at : at + end - begin] = points[begin:end]
            at += end - begin
            if part == 0:
                bodies[page] = at
        starts[page + 1] = at
    return copied, starts, bodies
