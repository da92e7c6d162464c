"""Which sentences are a host's own text. Counts, states and bounds of memory are tests of the crate."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import HostText
from dedup_service.core.errors import StateError
from dedup_service.core.splitmix import splitmix64

REGIONS, TITLES = 8, 5
HOST, OTHER = splitmix64(1), splitmix64(2)


def values(numbers: range) -> list[int]:
    """Sentence values of the given hashes of 26 bits, each of some length."""
    return [number << 6 | number % 64 for number in numbers]


def fresh(count: int, seed: int) -> list[int]:
    """Random sentence values, nearly all different from any others."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32).tolist()


def learned(titles: int, host: int = HOST) -> HostText:
    """The state after `titles` pages with the same sentences under different titles."""
    host_text = HostText()
    for title in range(titles):
        host_text.learn(host, [title], b"", values(range(3)))
    return host_text


def test_a_page_fetched_again_has_one_title() -> None:
    """Visits, facets and print views of an article do not make it host text."""
    host_text = HostText()
    for visit in range(1000):
        host_text.learn(HOST, [visit % 3, 7], b"", values(range(20)))
    assert not any(host_text.common(HOST, values(range(20))))


def test_each_host_learns_its_own_text() -> None:
    """What is common on one host is none of another's, until a mirror has shown the frame it copied."""
    host_text = learned(TITLES)
    assert host_text.common(HOST, values(range(4))) == [True, True, True, False]
    assert not any(host_text.common(OTHER, values(range(3))))
    for title in range(TITLES):
        host_text.learn(OTHER, [title], b"", values(range(1, 3)))
    assert host_text.common(OTHER, values(range(3))) == [False, True, True]
    assert host_text.common_to_pair(HOST, values(range(2)), OTHER, values(range(1, 9))) == values(range(3))


def test_titles_are_compared_by_their_terms() -> None:
    """The same terms, in whatever order, are the same title; a further term makes another one."""
    titles = [[1, 2], [1, 2, 3], [258], [1], [2]]
    host_text = HostText()
    for title in (titles[0], *titles):
        assert not any(host_text.common(HOST, values(range(3))))
        host_text.learn(HOST, title, b"", values(range(3)))
    assert all(host_text.common(HOST, values(range(3))))


def test_a_copy_is_not_changed_by_later_pages() -> None:
    """Nor is a state; both continue as the first does."""
    first = learned(TITLES - 1)
    copy, restored, state = first.copy(), HostText(first.state()), first.state()
    first.learn(HOST, [99], b"", values(range(3)))
    assert (copy.state(), restored.state(), len(copy)) == (state, state, 3)
    for one in (copy, restored):
        one.learn(HOST, [99], b"", values(range(3)))
    assert first.state() == copy.state() == restored.state() != state


@pytest.mark.parametrize("state", [b"x", b"\x05" + bytes(7), bytes(9), b"\xff" + bytes(7), b"\x01" + bytes(7 + 128)])
def test_other_bytes_are_no_state(state: bytes) -> None:
    """Bytes that are no state are refused, with a hint what to do."""
    with pytest.raises(StateError, match="restore from"):
        HostText(state)


@given(st.binary(max_size=40))
def test_a_state_of_strangers_stops_nobody(state: bytes) -> None:
    """It is refused, or learns on."""
    try:
        host_text = HostText(state)
    except StateError:
        return
    host_text.learn(HOST, [1], state, values(range(3)))
    assert len(host_text.common(HOST, fresh(9, 1))) == 9


def test_a_hostile_host_pushes_out_those_of_its_table_alone() -> None:
    """A million sentences of one host, under two titles each, leave the text of hosts in other tables alone."""
    hosts = [number * (1 << 40) + number for number in range(REGIONS)]
    host_text, sizes = HostText(), []
    for host in hosts:
        for title in range(TITLES):
            host_text.learn(host, [title], b"", values(range(30)))
    for part in range(50):
        for title in range(2):
            host_text.learn(hosts[0], [title], b"", fresh(20_000, part))
        sizes.append(host_text.size_bytes)
    kept = [all(host_text.common(host, values(range(30)))) for host in hosts]
    assert kept == [False] + [True] * (REGIONS - 1)
    assert all(before <= after < 3 << 20 for before, after in pairwise(sizes))
