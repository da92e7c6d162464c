"""Clusters of duplicates, compared with sets."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.service.guard_oracle import estimated_distinct
from dedup_service.core.decision.duplicate_clusters import ClusterSizes, Copy, DuplicateClusters
from dedup_service.core.url import url_hash

names = st.integers(0, 40).map("site-{}".format)
growths = st.lists(st.tuples(st.integers(1, 5), names, names, st.none() | names), max_size=120)


def copy_of(original: int, url: str, host: str, title: str | None) -> Copy:
    """A copy of the kept page `original`."""
    return Copy(original, url_hash(url), url_hash(host), None if title is None else url_hash(title))


@given(growths)
def test_sizes_are_those_of_the_sets(copies: list[tuple[int, str, str, str | None]]) -> None:
    """After each copy the estimates are those of the sets of pages, hosts and other titles."""
    clusters, seen = DuplicateClusters(), []
    for copy in copies:
        size = clusters.add(copy_of(*copy))
        seen.append(copy)
        cluster = [one for one in seen if one[0] == copy[0]]
        sets = [{str(one[place]).encode() for one in cluster if one[place] is not None} for place in (1, 2, 3)]
        assert size == ClusterSizes(*map(estimated_distinct, sets))


@given(growths, st.integers(0, 120), st.integers(2, 4))
def test_packed_clusters_continue_as_before(
    copies: list[tuple[int, str, str, str | None]], cut: int, max_clusters: int
) -> None:
    """They also keep the order in which they are forgotten."""
    whole, before = DuplicateClusters(max_clusters=max_clusters), DuplicateClusters(max_clusters=max_clusters)
    for copy in copies:
        whole.add(copy_of(*copy))
    for copy in copies[:cut]:
        before.add(copy_of(*copy))
    after = DuplicateClusters(before.pack(), max_clusters=max_clusters)
    for copy in copies[cut:]:
        after.add(copy_of(*copy))
    assert after.pack() == whole.pack()


def test_the_least_recently_grown_are_forgotten() -> None:
    """A quarter is forgotten at once; a cluster that grows stays, however old it is."""
    clusters = DuplicateClusters(max_clusters=8)
    for original in (*range(8), 0, 8):
        size = clusters.add(copy_of(original, f"page {original} {len(clusters)}", "host", None))
    assert (len(clusters), size.pages) == (7, 1)
    assert clusters.add(copy_of(0, "another", "host", None)).pages == 3
    assert clusters.add(copy_of(1, "another", "host", None)).pages == 1


def test_a_cluster_is_dropped_with_its_page() -> None:
    """A page without a cluster may be dropped, too."""
    clusters = DuplicateClusters()
    clusters.add(copy_of(1, "one", "host", None))
    clusters.drop(1)
    clusters.drop(2)
    assert len(clusters) == 0


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.none() | st.integers(0, 9))
def test_a_copy_survives_the_journal(original: int, url: int, host: int, title: int | None) -> None:
    """`unpack` returns what `pack` packed."""
    copy = Copy(original, url, host, title)
    assert Copy.unpack(copy.pack()) == copy
