"""Records are prepared in any process, and one that kills its worker affects no other."""

import os
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from dedup_service.core.page import Page, PreparedPage
from dedup_service.runtime.readers import Extract, Record
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.resources import SpaceOptions
from dedup_service.runtime.workers.preparation import BadRecord, Preparer, submit_ahead

PARENT = os.getpid()


def line(number: int) -> JsonLine:
    """A page whose text depends on `number`."""
    text = " ".join(f"word{number}x{position}" for position in range(60))
    return JsonLine(number, f'{{"url": "https://a.example/{number}", "text": "{text}"}}'.encode())


@dataclass(frozen=True, slots=True)
class Killer:
    """A record on which a worker process dies."""

    number: int
    raw: bytes = b""
    place: str = "here"
    identity: bytes = b"killer"
    parent: int = PARENT

    def page(self, extract: Extract) -> Page:
        """End the process, unless it is the one that created this record."""
        if os.getpid() != self.parent:
            os._exit(1)
        return Page(url="https://a.example/k", canonical_url="https://a.example/k", id="k", text="a text")


def answers(records: list[Record], processes: int) -> list[PreparedPage | BadRecord]:
    """Prepare `records` as one batch."""
    with Preparer(SpaceOptions(), processes) as preparer:
        return preparer.submit(records).result()


@pytest.mark.slow
def test_two_processes_give_the_answers_of_one() -> None:
    """Order and content do not depend on the process."""
    records = [*map(line, range(1, 40)), JsonLine(40, b"hello"), line(41)]
    assert answers(records, 2) == answers(records, 1)


@pytest.mark.slow
def test_a_record_that_kills_its_worker_is_kept_with_that_reason() -> None:
    """The records around it are prepared."""
    given = answers([line(1), Killer(2), line(3)], 2)
    assert [answer.page.id for answer in given if isinstance(answer, PreparedPage)] == [
        "https://a.example/1",
        "k",
        "https://a.example/3",
    ]
    assert [answer.reason for answer in given if isinstance(answer, PreparedPage)] == [
        None,
        "not judged: the worker process died over this page, twice",
        None,
    ]


@pytest.mark.slow
def test_batches_after_a_death_are_prepared() -> None:
    """The dead worker is replaced."""
    with Preparer(SpaceOptions(), 2) as preparer:
        preparer.submit([Killer(1)]).result()
        assert isinstance(preparer.submit([line(2)]).result()[0], PreparedPage)


class Submissions:
    """A `submit` that remembers its items; each result is ten times the item, item `fails` raises."""

    def __init__(self, fails: int | None = None) -> None:
        self.items: list[int] = []
        self._fails = fails

    def __call__(self, item: int) -> Future[int]:
        self.items.append(item)
        future: Future[int] = Future()
        if item == self._fails:
            future.set_exception(ValueError(f"item {item}"))
        else:
            future.set_result(10 * item)
        return future


@pytest.mark.parametrize("depth", [0, 1, 3, 99])
def test_so_many_items_are_submitted_ahead(depth: int) -> None:
    """Each result comes once `depth` further items are submitted, or all; in the order of the items."""
    submit, results = Submissions(), []
    for item, result in submit_ahead(submit, range(8), depth):
        results.append((item, result))
        assert submit.items == list(range(min(8, item + 1 + depth)))
    assert results == [(item, 10 * item) for item in range(8)]


def test_drain_yields_all_results_before_the_next_item_is_taken() -> None:
    """After item 2 nothing is in progress."""
    submit, done = Submissions(), []
    for item, _ in submit_ahead(submit, range(6), 2, drain=lambda latest: latest == 2):
        done.append((item, len(submit.items)))
    assert done == [(0, 3), (1, 3), (2, 3), (3, 6), (4, 6), (5, 6)]


def test_the_exception_of_a_future_is_raised_in_its_turn() -> None:
    """Results before it are yielded."""
    results = submit_ahead(Submissions(fails=2), range(5), 3)
    assert [next(results), next(results)] == [(0, 0), (1, 10)]
    with pytest.raises(ValueError, match="item 2"):
        next(results)


@dataclass(frozen=True, slots=True)
class Failing:
    """A record that raises `times` times, and then is a page."""

    number: int
    failed: list[int]
    times: int
    everywhere: bool = False
    raw: bytes = b""
    place: str = "here"
    identity: bytes = b"failing"

    def page(self, extract: Extract) -> Page:
        """Raise an error that nobody expects, or return a page whose text is extracted."""
        text = extract("<p>a text</p>", None).text if not self.everywhere else ""
        self.failed.append(1)
        if (text or self.everywhere) and len(self.failed) <= self.times:
            raise AttributeError("'Decompressor' object has no attribute 'unused_data'")
        return Page(url="https://a.example/f", canonical_url="https://a.example/f", id="f", text=text)


@pytest.mark.slow
@pytest.mark.parametrize("inline", [True, False])
def test_a_page_that_fails_twice_is_undecided_and_never_ends_a_stream(inline: bool) -> None:
    """Its reason names the class of the error; one that fails once is prepared; one without an address is bad."""
    records: list[Record] = [
        line(1),
        Failing(2, [], 2),
        Failing(3, [], 1),
        Failing(4, [], 99, everywhere=True),
        line(5),
    ]
    with Preparer(SpaceOptions(), inline=inline) as preparer:
        given = preparer.submit(records).result(60)
    reasons = [answer.reason if isinstance(answer, PreparedPage) else answer.problem for answer in given]
    error = "AttributeError: 'Decompressor' object has no attribute 'unused_data'"
    short = "too little text: 5 letters, at least 64 to judge"
    assert reasons == [None, f"not judged: {error}", short, error, None]
    assert [isinstance(answer, BadRecord) for answer in given] == [False, False, False, True, False]
