"""Which sentences are a host's own text."""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.host_text import (
    MAX_SETS,
    REGIONS,
    TITLES,
    WAYS,
    HostText,
    LearnedPages,
    title_hash,
)
from dedup_service.core.errors import StateError
from dedup_service.core.splitmix import splitmix64

Sentences = npt.NDArray[np.uint32]
Follow = tuple[int, int | None, list[int]]

MIB = 1 << 20
HOST, OTHER = splitmix64(1), splitmix64(2)
FOLLOWS = st.lists(
    st.tuples(
        st.integers(0, 3).map(splitmix64),
        st.none() | st.integers(0, 9).map(splitmix64),
        st.lists(st.integers(0, 40), unique=True, max_size=20),
    ),
    max_size=60,
)


def values(numbers: object) -> Sentences:
    """Sentence values of the given hashes of 26 bits, each of some length."""
    return np.fromiter((number << 6 | number % 64 for number in numbers), np.uint32)  # type: ignore[attr-defined]


def fresh(count: int, seed: int) -> Sentences:
    """Random sentence values, nearly all different from any others."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)


def learned(titles: int, host: int = HOST, frame: Sentences | None = None) -> HostText:
    """The state after `titles` pages with the same sentences under different titles."""
    host_text = HostText()
    for title in range(titles):
        host_text.follow(host, splitmix64(title), values(range(3)) if frame is None else frame)
    return host_text


@given(FOLLOWS)
def test_a_sentence_is_common_from_five_titles_on_one_host(follows: list[Follow]) -> None:
    """While all sentences fit, the answers are those of an exact count of titles."""
    titles: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    host_text, every = HostText(), values(range(41))
    for host, title, numbers in follows:
        expected = [len(titles[host, number]) >= TITLES for number in range(41)]
        assert host_text.common(host, every).tolist() == expected
        host_text.follow(host, title, values(numbers))
        if title is not None:
            for number in numbers:
                titles[host, number].add(title)


@settings(max_examples=30)
@given(FOLLOWS, st.integers(0, 60), st.booleans())
def test_a_state_continues_alike(follows: list[Follow], cut: int, crowd: bool) -> None:
    """Cut at any place, the second part gives the same answers and the same state."""
    whole = HostText()
    if crowd:
        for page in range(40):
            whole.follow(HOST, page, fresh(48, page))
    for follow in follows[:cut]:
        whole.follow(follow[0], follow[1], values(follow[2]))
    second = HostText(whole.state())
    for host, title, numbers in follows[cut:]:
        assert whole.common(host, values(numbers)).tolist() == second.common(host, values(numbers)).tolist()
        whole.follow(host, title, values(numbers))
        second.follow(host, title, values(numbers))
    assert (second.state(), len(second)) == (whole.state(), len(whole))


@pytest.mark.parametrize("state", [b"x", b"\x05" + bytes(7), bytes(9), b"\xff" + bytes(7), b"\x01" + bytes(7 + 128)])
def test_other_bytes_are_no_state(state: bytes) -> None:
    """Bytes that are no state are refused, with a hint what to do."""
    with pytest.raises(StateError, match="restore from"):
        HostText(state)


def test_pages_without_title_teach_nothing() -> None:
    """Without a title, a frame cannot be told from the same page again: no title is not another title."""
    host_text = HostText()
    for _ in range(100):
        host_text.follow(HOST, None, values(range(3)))
    assert len(host_text) == 0
    host_text = learned(TITLES - 1)
    host_text.follow(HOST, None, values(range(3)))
    assert not host_text.common(HOST, values(range(3))).any()


def test_a_page_fetched_again_has_one_title() -> None:
    """Visits, facets and print views of an article do not make it host text."""
    host_text = HostText()
    for visit in range(1000):
        host_text.follow(HOST, splitmix64(visit % 3), values(range(20)))
    assert not host_text.common(HOST, values(range(20))).any()


def test_each_host_learns_its_own_text() -> None:
    """What is common on one host is none of another's, until a mirror has shown the frame it copied."""
    host_text = learned(TITLES)
    assert host_text.common(HOST, values(range(4))).tolist() == [True, True, True, False]
    assert not host_text.common(OTHER, values(range(3))).any()
    for title in range(TITLES):
        host_text.follow(OTHER, splitmix64(title), values(range(1, 3)))
    assert host_text.common(OTHER, values(range(3))).tolist() == [False, True, True]


@given(FOLLOWS, st.integers(0, 3).map(splitmix64), st.integers(0, 3).map(splitmix64))
def test_what_does_not_count_between_two_pages(follows: list[Follow], one: int, other: int) -> None:
    """A sentence of either page does not count if it is common on either page's host."""
    host_text = HostText()
    for host, title, numbers in follows:
        host_text.follow(host, title, values(numbers))
    ours, theirs = values(range(25)), values(range(15, 41))
    every = np.union1d(ours, theirs)
    expected = every[host_text.common(one, every) | host_text.common(other, every)]
    assert np.array_equal(host_text.common_to_pair(one, ours, other, theirs), expected)


def test_the_length_of_a_sentence_does_not_count() -> None:
    """The lowest six bits of a value say how long the sentence is, not which it is."""
    host_text = learned(TITLES, frame=np.array([5 << 6 | 3], np.uint32))
    assert host_text.common(HOST, np.array([5 << 6 | 9, 6 << 6 | 3], np.uint32)).tolist() == [True, False]


def test_memory_grows_with_the_sentences_and_is_bounded() -> None:
    """A few pages take kilobytes; a million different sentences take no more than the largest table."""
    host_text = learned(TITLES)
    assert host_text.size_bytes == REGIONS * 16 * WAYS * 16
    host_text.follow(HOST, 1, fresh(400, 0))
    assert host_text.size_bytes < MIB
    for page in range(20_000):
        host_text.follow(splitmix64(page % 64), page, fresh(48, page))
    assert host_text.size_bytes == REGIONS * MAX_SETS * WAYS * 16 == 16 * MIB


def test_a_hostile_host_pushes_out_those_of_its_table_alone() -> None:
    """A million sentences of one host, under two titles each, leave the text of hosts in other tables alone."""
    hosts = [number * (1 << 40) + number for number in range(REGIONS)]
    host_text = HostText()
    for host in hosts:
        for title in range(TITLES):
            host_text.follow(host, title, values(range(30)))
    for part in range(50):
        for title in range(2):
            host_text.follow(hosts[0], title, fresh(20_000, part))
    kept = [bool(host_text.common(host, values(range(30))).all()) for host in hosts]
    assert kept == [False] + [True] * (REGIONS - 1)
    assert host_text.size_bytes < 3 * MIB


def test_rare_frames_are_learned_between_many_other_sentences() -> None:
    """A sidebar of one page in a hundred becomes common while the others' sentences come and go."""
    host_text = HostText()
    for page in range(20_000):
        host_text.follow(HOST, page, fresh(40, page))
        if page % 100 == 0:
            host_text.follow(HOST, page, values(range(20)))
    assert len(host_text) <= MAX_SETS * WAYS
    assert host_text.common(HOST, values(range(20))).all()


def test_titles_are_compared_by_their_terms() -> None:
    """No term, no title; the same terms, the same title; a further term, another one."""
    assert title_hash(()) is None
    assert title_hash((1, 2)) == title_hash([1, 2])
    assert len({title_hash((1, 2)), title_hash((1, 2, 3)), title_hash((258,)), title_hash((1,))}) == 4


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 12),
            st.lists(st.integers(0, 3), max_size=2, unique=True),
            st.sampled_from([b"", bytes(range(64)), bytes(64), b"\7" * 128]),
            st.integers(0, 40),
        ),
        max_size=80,
    ),
    st.lists(st.integers(1, 30), min_size=1),
)
def test_many_pages_teach_what_they_teach_one_by_one(
    pages: list[tuple[int, list[int], bytes, int]], sizes: list[int]
) -> None:
    """Whatever the batches are: with a title and a text, one of them or none, and while tables are doubled."""
    one_by_one, together = HostText(), HostText()
    sentences = np.zeros((len(pages), 40), np.uint32)
    for page, (host, terms, keys, count) in enumerate(pages):
        sentences[page, :count] = fresh(count, page % 7)
        if count:
            one_by_one.learn(host, np.array(sorted(terms), np.uint16), keys, sentences[page, :count])
    lesson = LearnedPages.of(
        [host for host, *_ in pages],
        [np.array(sorted(terms), "<u2").tobytes() for _, terms, *_ in pages],
        [keys for *_, keys, _ in pages],
        sentences,
        np.array([count for *_, count in pages], np.int64),
    )
    first = 0
    for size in sizes * len(pages):
        end = min(first + size, len(pages))
        together.learn_many(lesson, first, end)
        first = end
    assert together.state() == one_by_one.state()
    assert len(together) == len(one_by_one)
