"""What is true of a demo page, and how a verdict compares with it.

Pages of one `family` are copies of one story, so exactly one of them should be kept: which one depends
only on which was visited first. A page that carries half of a story is `PARTLY` a copy: either answer
is acceptable and it counts for neither side.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Agreement", "Relation", "Truth", "judge"]


class Relation(StrEnum):
    """How a page stands to its family."""

    ORIGINAL = "original"
    COPY = "copy"
    PARTLY = "partly a copy"
    SAME_PAGE = "same page, other address"
    OWN = "no copy of anything"


class Agreement(StrEnum):
    """What a verdict was worth."""

    RIGHT = "right"
    MISSED = "missed copy"
    FALSE_DROP = "false drop"
    EITHER = "either will do"


@dataclass(frozen=True, slots=True)
class Truth:
    """What the site's author knows: family (a story's name), relation, and in words what was done to the page."""

    family: str
    relation: Relation
    note: str


def judge(truth: Truth, verdict: str, target: Truth | None, family_kept: bool) -> Agreement:
    """Return what `verdict` on a page was worth.

    target: the truth about the page it was called a duplicate of, or None.
    family_kept: whether a full page of the same family had been kept before.
    """
    if verdict == "duplicate":
        if target is None or target.family != truth.family:
            return Agreement.FALSE_DROP
        partly = Relation.PARTLY in (truth.relation, target.relation)
        return Agreement.EITHER if partly else Agreement.RIGHT
    if truth.relation is Relation.PARTLY:
        return Agreement.EITHER
    if family_kept and verdict not in ("unchanged", "updated"):
        return Agreement.MISSED
    return Agreement.RIGHT
