"""Pages as a feed is told of them."""

from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.events import PageDecided
from dedup_service.runtime.live_stats import LiveStats

__all__ = ["Clock", "copy_of", "feed_at", "undecided", "unique"]


NEAR = Distance(words=2, body=1)


class Clock:
    """Unix seconds that the test sets."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def feed_at(clock: Clock, **options: object) -> LiveStats:
    """A feed with the test's time."""
    return LiveStats("filter", clock=clock, **options)  # type: ignore[arg-type]


def unique(sequence: int) -> PageDecided:
    """A page that repeats none."""
    url = f"https://a.example/{sequence}"
    return PageDecided(Verdict(sequence=sequence, id=url, url=url, kind=VerdictKind.UNIQUE, space="s"), "title")


def undecided(sequence: int, reason: str) -> PageDecided:
    """A page that is passed on for this reason."""
    url = f"https://a.example/{sequence}"
    verdict = Verdict(sequence=sequence, id=url, url=url, kind=VerdictKind.UNDECIDED, space="s", reason=reason)
    return PageDecided(verdict, "title")


def copy_of(
    sequence: int,
    *,
    url: str = "https://b.example/1",
    of_url: str = "https://a.example/1",
    title: str = "title",
    kind: VerdictKind = VerdictKind.DUPLICATE,
    distance: Distance = NEAR,
    score: float | None = 0.9,
) -> PageDecided:
    """A page that repeats another."""
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
        reason="nearly equal",
    )
    return PageDecided(verdict, title, original=1)
