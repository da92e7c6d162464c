"""The sequences of the latest pages, by URL."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.events import PageDecided
from dedup_service.runtime.kafka.explain.live_pages import RecentDecisions


def decided(url: str, sequence: int) -> PageDecided:
    """Return the event of a decided page."""
    verdict = Verdict(sequence=sequence, id=url, url=url, kind=VerdictKind.UNIQUE, space="s")
    return PageDecided(verdict, "", sequence - 1)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=8), st.integers(1, 5))
def test_the_latest_visits_are_remembered(batches: list[list[str]], size: int) -> None:
    """Of each of the last `size` URLs, the latest visit is remembered."""
    recent, decisions = RecentDecisions(size), []
    for batch in batches:
        pages = [decided(url, len(decisions) + number) for number, url in enumerate(batch, 1)]
        decisions += pages
        recent.decided(pages)
    last = {page.verdict.url: page.verdict.sequence for page in decisions}
    remembered = sorted(last, key=lambda url: -last[url])[:size]
    for url in "abcdefgh":
        expected = (last[url], last[url] - 1) if url in remembered else None
        assert recent.find(url) == expected
