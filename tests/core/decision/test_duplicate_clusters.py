"""Clusters of duplicates, compared with sets."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.duplicate_clusters import ClusterSizes, Copy, DuplicateClusters
from dedup_service.core.url import url_hash
from tests.oracle.guards import estimated_distinct

names = st.integers(0, 40).map("site-{}".format)
others = st.none() | names
growths = st.lists(st.tuples(st.integers(1, 5), names, names, others, others), max_size=120)
Growths = list[tuple[int, str, str, str | None, str | None]]
hashes = st.integers(0, 2**32 - 1)


def copy_of(original: int, url: str, host: str, title: str | None = None, text: str | None = None) -> Copy:
    """A copy of the kept page `original`; title and text if they are others."""
    values = (url, host, title, text)
    return Copy(original, *(0 if value is None else url_hash(value) % 2**32 for value in values))


@given(growths)
def test_sizes_are_those_of_the_sets(copies: Growths) -> None:
    """After each copy the estimates are those of the sets of pages, hosts, other titles and other texts."""
    clusters, seen = DuplicateClusters(), []
    for copy in copies:
        size = clusters.add(copy_of(*copy))
        seen.append(copy)
        cluster = [one for one in seen if one[0] == copy[0]]
        sets = [{url_hash(str(one[at])) for one in cluster if one[at] is not None} for at in (1, 2, 3, 4)]
        assert size == ClusterSizes(*map(estimated_distinct, sets))


@given(growths, st.integers(0, 120), st.integers(2, 4))
def test_packed_clusters_continue_as_before(copies: Growths, cut: int, max_clusters: int) -> None:
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
        size = clusters.add(copy_of(original, f"page {original} {len(clusters)}", "host"))
    assert (len(clusters), size.pages) == (7, 1)
    assert clusters.add(copy_of(0, "another", "host")).pages == 3
    assert clusters.add(copy_of(1, "another", "host")).pages == 1


def test_a_cluster_is_dropped_with_its_page() -> None:
    """A page without a cluster may be dropped, too."""
    clusters = DuplicateClusters()
    clusters.add(copy_of(1, "one", "host"))
    clusters.drop(1)
    clusters.drop(2)
    assert len(clusters) == 0


@given(st.builds(Copy, st.integers(0, 2**63 - 1), hashes, hashes, hashes, hashes))
def test_a_copy_survives_the_journal(copy: Copy) -> None:
    """`unpack` returns what `pack` packed."""
    assert Copy.unpack(copy.pack()) == copy
