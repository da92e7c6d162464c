"""A profile's rule made tighter or looser by one number, so that a threshold can be chosen for the whole table.

How: an offset is added to the Jaccard bound of each row; every other bound, the names and what makes a candidate stay.
A row that asks for the same text is left alone: there is nothing to loosen in it. Bounds stay between LEAST and MOST.

Invariant: what a tighter rule of the family calls a match, a looser one does too, so each pair has one tightest offset.
"""

from collections.abc import Callable
from dataclasses import replace

from dedup_service.core.alike import Alike
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rule import MatchRule

__all__ = ["OFFSETS", "tightened", "tightest_offset"]

OFFSETS = tuple(round(step / 100, 2) for step in range(40, -41, -1))
"""From the tightest to the loosest, .01 apart: half of what the sketch's estimate errs by."""

LEAST, MOST = 0.02, 0.99
SAME_TEXT = 0.99
"""A row with this Jaccard bound or a higher one asks for the same text."""


def tightened(rule: MatchRule, offset: float) -> MatchRule:
    """Return `rule` with `offset` (-1 to 1) added to the Jaccard bounds of its rows; below 0 it is loosened.

    ConfigurationError for a rule without a row that can be moved.
    """
    if all(row.jaccard >= SAME_TEXT for row in rule.verified):
        raise ConfigurationError(
            "a rule of distance alone, or of equal texts, has no table to tighten: name a profile with rows [[match]]"
        )
    return replace(rule, verified=tuple(_moved(row, offset) for row in rule.verified))


def tightest_offset(flagged: Callable[[float], bool], offsets: tuple[float, ...] = OFFSETS) -> float | None:
    """Return the tightest of `offsets` (tightest first) at which `flagged` says yes, None where it never does.

    flagged: yes at an offset means yes at every looser one, so about seven questions answer for 81.
    """
    low, high = 0, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if flagged(offsets[middle]):
            high = middle
        else:
            low = middle + 1
    return offsets[low] if low < len(offsets) else None


def _moved(row: Alike, offset: float) -> Alike:
    if row.jaccard >= SAME_TEXT:
        return row
    return replace(row, jaccard=round(min(MOST, max(LEAST, row.jaccard + offset)), 4))
