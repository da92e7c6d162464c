"""DuplicateClusters of copies, against sets that are counted anew."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.service.guard_oracle import about
from dedup_service.core.decision.duplicate_clusters import ClusterSizes, Copy, DuplicateClusters
from dedup_service.core.url import url_hash

names = st.integers(0, 40).map("site-{}".format)
growths = st.lists(st.tuples(st.integers(1, 5), names, names, st.none() | names), max_size=120)


def copy_of(original: int, url: str, host: str, title: str | None) -> Copy:
    """A copy of the kept page `of`."""
    return Copy(original, url_hash(url), url_hash(host), None if title is None else url_hash(title))


@given(growths)
def test_sizes_are_those_of_the_sets(copies: list[tuple[int, str, str, str | None]]) -> None:
    """After each copy: about as many pages, hosts and other titles as the sets of them have."""
    groups, seen = DuplicateClusters(), []
    for copy in copies:
        size = groups.add(copy_of(*copy))
        seen.append(copy)
        mine = [one for one in seen if one[0] == copy[0]]
        sets = [{str(one[place]).encode() for one in mine if one[place] is not None} for place in (1, 2, 3)]
        assert size == ClusterSizes(*map(about, sets))


@given(growths, st.integers(0, 120), st.integers(2, 4))
def test_packed_groups_go_on_as_they_would_have(
    copies: list[tuple[int, str, str, str | None]], cut: int, maximum: int
) -> None:
    """Also in which of them are forgotten first."""
    whole, before = DuplicateClusters(max_clusters=maximum), DuplicateClusters(max_clusters=maximum)
    for copy in copies:
        whole.add(copy_of(*copy))
    for copy in copies[:cut]:
        before.add(copy_of(*copy))
    after = DuplicateClusters(before.pack(), max_clusters=maximum)
    for copy in copies[cut:]:
        after.add(copy_of(*copy))
    assert after.pack() == whole.pack()


def test_the_least_recently_grown_are_forgotten() -> None:
    """A quarter at once; a group that grows stays, however old it is."""
    groups = DuplicateClusters(max_clusters=8)
    for original in (*range(8), 0, 8):
        size = groups.add(copy_of(original, f"page {original} {len(groups)}", "host", None))
    assert (len(groups), size.pages) == (7, 1)
    assert groups.add(copy_of(0, "another", "host", None)).pages == 3
    assert groups.add(copy_of(1, "another", "host", None)).pages == 1


def test_a_group_leaves_with_its_page() -> None:
    """What comes later under the same sequence begins anew; one that has no group may leave, too."""
    groups = DuplicateClusters()
    groups.add(copy_of(1, "one", "host", None))
    groups.drop(1)
    groups.drop(2)
    assert len(groups) == 0


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.none() | st.integers(0, 9))
def test_a_copy_survives_the_journal(original: int, url: int, host: int, title: int | None) -> None:
    """What was packed is unpacked."""
    copy = Copy(original, url, host, title)
    assert Copy.unpack(copy.pack()) == copy
