"""A sample of the duplicates is compared again."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.newest import DuplicateRow, Newest
from dedup_service.runtime.live_stats.recheck import Rechecker, RecheckResult, Sampler, compare
from tests.hangs import HANG_S
from tests.runtime.live_stats.decided import copy_of

VOCABULARY = ("harbour", "council", "vote", "storm", "灯塔", "渡轮", "flood", "night", "23", "train")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=40)


def row(sequence: int) -> DuplicateRow:
    """A duplicate."""
    return Newest(1).add(copy_of(sequence), 0.0)


def shingles(text: str) -> set[str]:
    """Return the shingles of five letters and digits, by brute force."""
    bare = "".join(character for character in text if character.isalnum())
    return {bare[at : at + 5] for at in range(len(bare) - 4)}


@given(WORDS, WORDS)
def test_the_comparison_is_exact(one: list[str], two: list[str]) -> None:
    """It equals the comparison of sets of strings."""
    a, b = shingles("".join(one)), shingles("".join(two))
    if a and b:
        wanted = (len(a & b) / len(a | b), len(a & b) / min(len(a), len(b)))
        assert compare(" ".join(one), " ".join(two)) == pytest.approx(wanted)


def test_texts_too_short_for_shingles_are_compared_whole() -> None:
    """Both similarities are 1 if the texts are the same, else 0."""
    assert compare("ab", "AB") == (1.0, 1.0)
    assert compare("ab", "ac") == (0.0, 0.0)


def test_the_same_log_gives_the_same_sample() -> None:
    """The draw depends on sequence and seed; its size is about the share."""
    drawn = []
    for _ in range(2):
        sampler = Sampler(0.25, between_s=0.0)
        hits = []
        for sequence in range(2000):
            if sampler.offer(row(sequence), float(sequence)):
                hits.append(sequence)
                sampler.drawn.get_nowait()
        drawn.append(hits)
    assert drawn[0] == drawn[1]
    assert 400 < len(drawn[0]) < 600


def test_draws_are_limited_in_time_and_by_the_queue() -> None:
    """Two draws have a minimum distance, and a full queue takes no more; neither blocks."""
    sampler = Sampler(1.0, between_s=1.0)
    assert [sampler.offer(row(at), at / 2) for at in range(4)] == [True, False, True, False]
    sampler = Sampler(1.0, between_s=0.0)
    assert [sampler.offer(row(at), float(at)) for at in range(20)].count(True) == 16


def test_the_thread_records_each_result_and_survives_errors() -> None:
    """Confirmed, not confirmed, a text that is no longer kept, and a store that raises."""
    text, other = "The harbour council voted on Tuesday. " * 5, "A village library lent its telescope. " * 5
    answers = {1: (text, text), 2: (text, other), 3: (None, text)}
    results: list[RecheckResult | None] = []
    done = threading.Event()

    def record(result: RecheckResult | None) -> None:
        results.append(result)
        if len(results) == 4:
            done.set()

    sampler = Sampler(1.0, between_s=0.0)
    for sequence in (1, 2, 3, 4):
        assert sampler.offer(row(sequence), 0.0)
    with Rechecker(sampler, lambda drawn: answers[drawn.sequence], record):
        assert done.wait(HANG_S)
    assert [None if result is None else result.confirmed for result in results] == [True, False, None, None]


def test_leaving_does_not_wait_for_a_comparison_that_does_not_end() -> None:
    """Its thread is left to itself; what happens there afterwards is not reported, and then `last` is called."""
    begun, release, closed = threading.Event(), threading.Event(), threading.Event()
    results: list[RecheckResult | None] = []

    def texts(_row: DuplicateRow) -> tuple[str | None, str | None]:
        begun.set()
        release.wait(HANG_S)
        raise OSError("closed meanwhile")

    sampler = Sampler(1.0, between_s=0.0)
    assert sampler.offer(row(1), 0.0)
    left = threading.Event()

    def enter_and_leave() -> None:
        with Rechecker(sampler, texts, results.append, close_s=lambda: 0.0, last=closed.set):
            assert begun.wait(HANG_S)
        left.set()

    threading.Thread(target=enter_and_leave, daemon=True).start()
    assert left.wait(HANG_S)
    assert not closed.is_set()
    release.set()
    assert closed.wait(HANG_S)
    assert not results
