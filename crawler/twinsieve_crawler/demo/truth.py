"""The truth about a demo page, and how a verdict compares with it.

Pages of one `family` are copies of one story, so exactly one of them should be kept: the one that was
visited first. A page with half of a story is `PARTLY` a copy: either verdict is acceptable.
"""

from dataclasses import dataclass
from enum import StrEnum


class Relation(StrEnum):
    """How a page relates to its family."""

    ORIGINAL = "original"
    COPY = "copy"
    PARTLY = "partly a copy"
    SAME_PAGE = "same page, other address"
    OWN = "no copy of anything"


class Agreement(StrEnum):
    """How a verdict compares with the truth."""

    RIGHT = "right"
    MISSED = "missed copy"
    FALSE_DROP = "false drop"
    EITHER = "either will do"


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a page. family: name of its story. note: the edits in words."""

    family: str
    relation: Relation
    note: str


def judge(truth: Truth, verdict: str, target: Truth | None, family_kept: bool) -> Agreement:
    """Return how `verdict` compares with the truth about its page.

    target: the truth about the page that the verdict names as original, or None.
    family_kept: whether a complete page of the same family had been kept before.
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
