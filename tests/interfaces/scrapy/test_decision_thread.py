"""The decision thread: many verdicts with one commit, and every future resolved."""

import threading
from collections.abc import Sequence

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.interfaces.scrapy.shared_filter import DecisionThread
from tests.hangs import HANG_S


def page(number: int) -> PreparedPage:
    url = f"https://example.org/{number}"
    return PreparedPage(page=Page(id=url, url=url, canonical_url=url), fingerprint=Fingerprint(), body_hash=None)


class Batches:
    """A `decide_many` that records batch sizes, and blocks until `go_on` is set."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.in_progress = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, pages: Sequence[PreparedPage]) -> list[Verdict]:
        self.sizes.append(len(pages))
        self.in_progress.set()
        assert self.go_on.wait(HANG_S)
        return [Verdict(sequence=1, id=p.page.id, url=p.page.url, kind=VerdictKind.UNIQUE, space="s") for p in pages]


def test_pages_that_wait_during_a_commit_share_the_next_one() -> None:
    """The first page goes alone; the five that arrive meanwhile share a batch, and each gets its own verdict."""
    batches = Batches()
    thread = DecisionThread(batches)
    futures = [thread.submit(page(0))]
    assert batches.in_progress.wait(HANG_S)
    futures += [thread.submit(page(number)) for number in range(1, 6)]
    batches.go_on.set()
    assert [future.result(10).url for future in futures] == [page(number).page.url for number in range(6)]
    assert batches.sizes == [1, 5]
    thread.close()


def test_an_error_reaches_every_page_of_its_batch_and_no_other() -> None:
    """A batch that cannot be written fails as a whole; the thread continues with the next."""
    calls: list[int] = []

    def decide(pages: Sequence[PreparedPage]) -> list[Verdict]:
        calls.append(len(pages))
        if len(calls) == 1:
            raise StateError("disk full")
        return [Verdict(sequence=2, id=p.page.id, url=p.page.url, kind=VerdictKind.UNIQUE, space="s") for p in pages]

    thread = DecisionThread(decide)
    with pytest.raises(StateError, match="disk full"):
        thread.submit(page(0)).result(10)
    assert thread.submit(page(1)).result(10).kind is VerdictKind.UNIQUE
    thread.close()
