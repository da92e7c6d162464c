"""What a plan is asked for: values out of range are refused with advice, and kept pages follow from the others."""

import math
from typing import Any

import pytest

from dedup_service.core.capacity.workload import ClusterRequest, MachineKind, Workload
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import Keep


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("all", 400_000),
        ("1000", 1_000),
        ("500000", 400_000),
        ("1h", 3_600 * 10 * 0.4),
        ("1h,100", 100),
    ],
)
def test_kept_pages_are_those_that_no_bound_removes(keep: str, kept: float) -> None:
    """Copies are not kept, and expiry bounds the others by number and by age."""
    workload = Workload(pages=1e6, rate=10, copies=0.6, keep=Keep.parse(keep))
    assert workload.kept == pytest.approx(kept)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"pages": 0}, "pages: .* above 0"),
        ({"pages": math.inf}, "pages"),
        ({"rate": math.nan}, "rate"),
        ({"rate": -1}, "rate"),
        ({"copies": 1.5}, "copies: a share is from 0 to 1"),
        ({"copies": math.nan}, "copies"),
        ({"text_letters": 0}, "text letters"),
    ],
)
def test_a_workload_out_of_range_is_refused(values: dict[str, Any], says: str) -> None:
    """The message names the value that is wrong."""
    with pytest.raises(ConfigurationError, match=says):
        Workload(**{"pages": 1e6, "rate": 10} | values)


@pytest.mark.parametrize("values", [{"memory_bytes": 0}, {"disk_bytes": -1}, {"cores": 0}, {"network_bytes": math.inf}])
def test_a_machine_without_something_is_refused(values: dict[str, Any]) -> None:
    """Memory, disk, cores and network are above 0 and finite."""
    with pytest.raises(ConfigurationError, match="a machine has"):
        MachineKind(**values)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"shards": 128}, "64 slots at most.*larger machines"),
        ({"slots": 8, "shards": 3}, "3 shards do not divide 8 slots; give one of 1, 2, 4, 8 shards"),
        ({"slots": 8, "shards": 16}, "16 shards do not divide 8 slots"),
        ({"slots": 8, "shards": 0}, "0 shards"),
        ({"shards": 6}, "give 1, 2, 4, 8, 16, 32 or 64, which divide"),
        ({"slots": 12}, "slots: an index has 1, 2, 4, 8, 16, 32 or 64, got 12"),
        ({"replicas": 0}, "1 replica or more"),
        ({"window": 0}, "a window of 1 page"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(values: dict[str, int], says: str) -> None:
    """The message says which numbers can be."""
    with pytest.raises(ConfigurationError, match=says):
        ClusterRequest(**values)


def test_slots_follow_from_shards_unless_given() -> None:
    """A new log has 8 slots, and more only for more shards."""
    assert ClusterRequest().choices() == ((8, 1), (8, 2), (8, 4), (8, 8), (16, 16), (32, 32), (64, 64))
    assert ClusterRequest(slots=4).choices() == ((4, 1), (4, 2), (4, 4))
    assert ClusterRequest(shards=16).choices() == ((16, 16),)
    assert ClusterRequest(slots=64, shards=2).choices() == ((64, 2),)
