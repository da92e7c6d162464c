"""What the filter says of a page, and what may be done with it.

A verdict is a fact; an action is a policy. `drop` changes what is stored, never what is reported.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Action", "Distance", "Guard", "Verdict", "VerdictKind", "guard_in", "guard_reason"]

_PREFIX = "guard "


class Guard(StrEnum):
    """The names of the bounds, as reasons and counters have them."""

    PAGES = "pages"
    HOSTS = "hosts"
    TITLES = "titles"
    SURGE = "surge"


_BY_NAME = {guard.value: guard for guard in Guard}


class VerdictKind(StrEnum):
    """The five things that can be said of a page."""

    UNIQUE = "unique"
    DUPLICATE = "duplicate"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    UNDECIDED = "undecided"


class Action(StrEnum):
    """What happens to a page called `duplicate`."""

    PASS = "pass"  # noqa: S105 - not a password
    FLAG = "flag"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Distance:
    """Differing bits per channel, 0 to 64; None where a channel has no fingerprint on either side."""

    words: int | None = None
    body: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one page.

    sequence: its place in the total order, from 1.
    id, url: the page's, as the caller gave them.
    duplicate_of, duplicate_of_url: the kept page it repeats, or the earlier visit of its URL.
    distance, score: to that page; score is 0 to 1, higher is more alike.
    reason: the rule that decided, in words a report can quote; of a unique page, what it holds or stands in.
    space: the `space_id` in which it was decided.
    """

    sequence: int
    id: str
    url: str
    kind: VerdictKind
    space: str
    duplicate_of: str | None = None
    duplicate_of_url: str | None = None
    distance: Distance = Distance()
    score: float | None = None
    reason: str | None = None

    @property
    def guard(self) -> Guard | None:
        """The guard that did not believe a match, of an undecided page; None of any other."""
        return guard_in(self.reason) if self.kind is VerdictKind.UNDECIDED else None


def guard_reason(guard: Guard, text: str) -> str:
    """Return the reason of a verdict that `guard` decided."""
    return f"{_PREFIX}{guard}: {text}"


def guard_in(reason: str | None) -> Guard | None:
    """Return the guard that this reason of an undecided page names, or None.

    >>> guard_in("guard hosts: ...")
    <Guard.HOSTS: 'hosts'>
    """
    if reason is None or not reason.startswith(_PREFIX):
        return None
    return _BY_NAME.get(reason.removeprefix(_PREFIX).partition(":")[0])
