"""The verdict on a page, and the action that may follow.

A verdict is a fact; an action is a policy. `drop` changes what is stored, never what is reported.
"""

from dataclasses import dataclass
from enum import StrEnum

_PREFIX = "guard "
CLAIM_REFUSED = "claim_refused"
"""The name under which pages are counted whose claim was refused."""

_BY_CLAIM = "canonical link, "
_FAULT = "a fault of twinsieve: "
_REFUSED_CLAIM = "its canonical link names a page with another text"


class Guard(StrEnum):
    """The bounds beyond which a match is not accepted; such a page is `undecided`.

    The values are the names that reasons and counters use.

    Attributes:
        PAGES: The kept page has copies under too many URLs.
        HOSTS: The kept page has copies on too many hosts.
        TITLES: The kept page has copies under too many other titles.
        SURGE: Too many more of the recent pages than usual are suspicious copies.

    Example:
        >>> Guard("surge")
        <Guard.SURGE: 'surge'>
    """

    PAGES = "pages"
    HOSTS = "hosts"
    TITLES = "titles"
    SURGE = "surge"


_BY_NAME = {guard.value: guard for guard in Guard}
"""Guards by their names in reasons."""


class VerdictKind(StrEnum):
    """The five verdicts.

    Attributes:
        UNIQUE: No earlier kept page matches; the page is kept.
        DUPLICATE: An earlier kept page matches; the verdict names it.
        UNCHANGED: A further visit of a known URL, with the same body.
        UPDATED: A further visit of a known URL, with another body; its entry is replaced.
        UNDECIDED: The page cannot be judged, or a guard did not accept the match; it is passed on.
    """

    UNIQUE = "unique"
    DUPLICATE = "duplicate"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    UNDECIDED = "undecided"


class Action(StrEnum):
    """What happens to a page whose verdict is `duplicate`.

    Attributes:
        PASS: The page is passed on unchanged.
        FLAG: The page is passed on with its verdict.
        DROP: The page is not passed on.
    """

    PASS = "pass"  # noqa: S105 - not a password
    FLAG = "flag"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Distance:
    """The Hamming distance of two pages in each channel.

    Attributes:
        words: Differing bits in the channel `words`, 0 to 64; None if either page has no fingerprint there.
        body: Differing bits in the channel `body`, 0 to 64; None if either page has no fingerprint there.

    Example:
        >>> Distance(words=3)
        Distance(words=3, body=None)
    """

    words: int | None = None
    body: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one page.

    Attributes:
        sequence: The page's place in the total order, from 1.
        id: The page's id, as the caller gave it.
        url: The page's URL, as the caller gave it.
        kind: Which of the five verdicts it is.
        space: The `space_id` in which the page was judged.
        duplicate_of: The id of the kept page that this page repeats, or of the earlier visit of its URL;
            else None.
        duplicate_of_url: The URL of that page, or None.
        distance: The Hamming distance to that page.
        score: How alike the two pages are, 0 to 1, higher is more alike; None if they were not compared.
        reason: The rule that decided, in words that a report can quote; for a unique page, the page that it
            contains or that contains it. None if there is nothing to say.
        duplicate_of_base: The base that has that page, as it was named when the state was begun; None for a page of
            the state itself.

    Example:
        >>> verdict = Verdict(sequence=1, id="a", url="a.test", kind=VerdictKind.UNIQUE, space="tf-0")
        >>> verdict.kind == "unique", verdict.duplicate_of
        (True, None)
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
    duplicate_of_base: str | None = None

    @property
    def guard(self) -> Guard | None:
        """The guard that did not accept a match, if that made the page undecided; else None."""
        return guard_in(self.reason) if self.kind is VerdictKind.UNDECIDED else None

    @property
    def is_fault(self) -> bool:
        """Whether the page is undecided because the native core failed on it."""
        return self.kind is VerdictKind.UNDECIDED and fault_in(self.reason)

    @property
    def by_claim(self) -> bool:
        """Whether the page is a visit of the URL that it names as canonical, not of its own."""
        return self.reason is not None and self.reason.startswith(_BY_CLAIM)

    @property
    def claim_refused(self) -> bool:
        """Whether the page names a kept page of another text as canonical; it was judged without that."""
        return claim_refused_in(self.reason)


def guard_reason(guard: Guard, text: str) -> str:
    """Return the reason of a verdict that `guard` decided."""
    return f"{_PREFIX}{guard}: {text}"


def guard_in(reason: str | None) -> Guard | None:
    """Return the guard that the reason of an undecided page names, or None.

    >>> guard_in("guard hosts: ...")
    <Guard.HOSTS: 'hosts'>
    """
    if reason is None or not reason.startswith(_PREFIX):
        return None
    return _BY_NAME.get(reason.removeprefix(_PREFIX).partition(":")[0])


def fault_in(reason: str | None) -> bool:
    """Whether the reason of an undecided page says that the native core failed on it."""
    return reason is not None and reason.startswith(_FAULT)


def visit_by_claim_reason(text: str) -> str:
    """Return the reason of a verdict on a visit of the URL that the page claims."""
    return f"{_BY_CLAIM}{text}"


def refused_claim_reason(reason: str | None) -> str:
    """Return the reason of a verdict on a page whose claim was refused. reason: without that, or None.

    Example:
        >>> claim_refused_in(refused_claim_reason("nearly equal"))
        True
    """
    return _REFUSED_CLAIM if reason is None else f"{reason}; {_REFUSED_CLAIM}"


def claim_refused_in(reason: str | None) -> bool:
    """Whether the reason of a verdict says that the page's claim was refused."""
    return reason is not None and reason.endswith(_REFUSED_CLAIM)


def guard_counter(guard: Guard) -> str:
    """Return the name under which pages that `guard` left undecided are counted.

    Example:
        >>> guard_counter(Guard.SURGE)
        'guard_surge'
    """
    return f"guard_{guard}"
