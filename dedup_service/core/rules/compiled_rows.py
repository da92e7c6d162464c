"""A rule table as arrays: the first row that holds for two pages, in one compiled call.

A bound that a row does not have is infinite here, so it always holds. `MatchRow.holds` is the definition; a table that
bounds what `core.evidence.quantities` does not compute is left to it.
"""

import math
import sys
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.quantities import DISTANT, FOUND, QUANTITIES, UNREADABLE, pair_quantities
from dedup_service.core.kernels import kernel, kernel_inline
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.verdict import Distance

__all__ = ["DISTANT", "NO_ROW", "UNREADABLE", "CompiledRows", "first_holding"]

NO_ROW = -3
"""No row holds; the quantities are there. Other numbers below 0 are those of `pair_quantities`."""

_PLACES = {name: place for place, name in enumerate(QUANTITIES)}
_JACCARD, _MIN_LETTERS = _PLACES["jaccard"], _PLACES["min_letters"]


class CompiledRows:
    """Rows to be tried one after another. Use `of`. Not thread-safe.

    min_jaccard: of the whole sketches, below which no row is tried.
    """

    __slots__ = ("_found", "_lower", "_min_jaccard", "_upper")

    def __init__(self, lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64], min_jaccard: float) -> None:
        self._lower, self._upper, self._min_jaccard = lower, upper, min_jaccard
        self._found = np.zeros(len(QUANTITIES))

    @classmethod
    def of(cls, rows: Sequence[MatchRow], min_jaccard: float) -> Self | None:
        """Return rows compiled; None if one of them has a bound that is not computed here."""
        lower, upper = (np.full((len(rows), len(QUANTITIES)), value) for value in (-math.inf, math.inf))
        for number, row in enumerate(rows):
            lower[number, _JACCARD], lower[number, _MIN_LETTERS] = row.jaccard, _as_float(row.min_letters)
            for bounds, named in zip((upper, lower), row.bounds(), strict=True):
                for name, limit in named:
                    if name not in _PLACES:
                        return None
                    bounds[number, _PLACES[name]] = _as_float(limit)
        return cls(lower, upper, min_jaccard)

    def first(
        self, kept: bytes, page: bytes, common: npt.NDArray[np.uint32], distance: Distance, *, same_host: bool
    ) -> int:
        """Return the number of the first row that holds for two pages; below 0 if none does, or it is not known.

        kept, page: packed evidence. common: values of sentences that a host of the two repeats, ascending.
        """
        words, body = distance.words, distance.body
        return first_row(
            np.frombuffer(kept, np.uint8),
            np.frombuffer(page, np.uint8),
            common,
            same_host,
            math.inf if words is None else float(words),
            math.inf if body is None else float(body),
            self._min_jaccard,
            self._lower,
            self._upper,
            self._found,
        )

    @property
    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
        """The lower and the upper bounds, float64[rows, QUANTITIES], and the similarity that any row needs."""
        return self._lower, self._upper, self._min_jaccard

    def quantity(self, name: str) -> float:
        """Return one of the QUANTITIES of the two pages that came last, if a row held or none did."""
        return float(self._found[_PLACES[name]])


def _as_float(limit: float) -> float:
    """Return a bound; of a whole number that is too large, the largest float, which no finite quantity reaches."""
    return float(min(limit, sys.float_info.max)) if isinstance(limit, int) else limit


@kernel
def first_row(
    kept: npt.NDArray[np.uint8],
    page: npt.NDArray[np.uint8],
    common: npt.NDArray[np.uint32],
    same_host: bool,
    words_distance: float,
    body_distance: float,
    min_jaccard: float,
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
    found: npt.NDArray[np.float64],
) -> int:
    """Return the first row whose bounds, lower and upper: float64[rows, QUANTITIES], hold; NO_ROW if none does.

    The rest is as in `pair_quantities`.
    """
    outcome = pair_quantities(kept, page, common, same_host, words_distance, body_distance, min_jaccard, found)
    return int(first_holding(found, lower, upper)) if outcome == FOUND else outcome


@kernel_inline
def first_holding(
    found: npt.NDArray[np.float64], lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64]
) -> int:
    """Return the first row whose bounds hold for QUANTITIES, NO_ROW if none does."""
    for row in range(len(lower)):
        holds = True
        for place in range(lower.shape[1]):
            holds &= lower[row, place] <= found[place] <= upper[row, place]
        if holds:
            return row
    return NO_ROW
