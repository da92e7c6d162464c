"""Decided pages, as an observer gets them."""

from dataclasses import replace

from dedup_service.core.verdict import Distance, Verdict, VerdictKind, refused_claim_reason
from dedup_service.runtime.events import PageDecided
from dedup_service.runtime.live_stats import LiveStats

NEAR = Distance(words=2, body=1)


class Clock:
    """A clock in Unix seconds that the test sets."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def live_stats_at(clock: Clock, **options: object) -> LiveStats:
    """Live statistics with the clock of the test."""
    return LiveStats("filter", clock=clock, **options)  # type: ignore[arg-type]


def unique(sequence: int) -> PageDecided:
    """A unique page."""
    url = f"https://a.example/{sequence}"
    return PageDecided(Verdict(sequence=sequence, id=url, url=url, kind=VerdictKind.UNIQUE, space="s"), "title")


def undecided(sequence: int, reason: str) -> PageDecided:
    """An undecided page with this reason."""
    url = f"https://a.example/{sequence}"
    verdict = Verdict(sequence=sequence, id=url, url=url, kind=VerdictKind.UNDECIDED, space="s", reason=reason)
    return PageDecided(verdict, "title")


def refused(sequence: int) -> PageDecided:
    """A unique page whose claim was refused."""
    page = unique(sequence)
    return page._replace(verdict=replace(page.verdict, reason=refused_claim_reason(None)))


def copy_of(
    sequence: int,
    *,
    url: str = "https://b.example/1",
    of_url: str = "https://a.example/1",
    title: str = "title",
    kind: VerdictKind = VerdictKind.DUPLICATE,
    distance: Distance = NEAR,
    score: float | None = 0.9,
    reason: str = "nearly equal",
) -> PageDecided:
    """A page whose verdict names another page."""
    verdict = Verdict(
        sequence=sequence,
        id=url,
        url=url,
        kind=kind,
        space="s",
        duplicate_of=of_url,
        duplicate_of_url=of_url,
        distance=distance,
        score=score,
        reason=reason,
    )
    return PageDecided(verdict, title, original=1)
