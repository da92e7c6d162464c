"""Shards: the owner of a sequence, and answers that do not depend on the number of shards."""

import numpy as np
import pytest

from dedup_service.core.index import BlockIndex, owner
from dedup_service.core.index.block_shard import owners
from dedup_service.core.splitmix import splitmix64
from tests.core.index.streams import hot, pairs_of


def test_mix64_is_the_published_mixer() -> None:
    """The first outputs of SplitMix64 with seed 0 are those of its authors' program."""
    step = 0x9E3779B97F4A7C15
    assert [splitmix64(step * number) for number in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64])
def test_load_is_even_for_sequences_with_gaps(shards: int) -> None:
    """Even sequences only, as commit markers leave them, load each shard to within a third of its share."""
    sequences = np.arange(0, 200_000, 2)
    counts = np.bincount(owners(sequences, shards), minlength=shards)
    assert counts.min() > len(sequences) / shards * 2 / 3
    assert counts.max() < len(sequences) / shards * 4 / 3
    assert owners(sequences[:100], shards).tolist() == [owner(at, shards) for at in sequences[:100].tolist()]


def test_answers_do_not_depend_on_shards() -> None:
    """One shard and five give the same candidates in the same order."""
    stored = np.repeat(hot(9000, 1), 2)
    indexes = [BlockIndex(4, shards=shards) for shards in (1, 5)]
    for index in indexes:
        index.insert_many(np.arange(len(stored)), stored)
    for fingerprint in stored[::301].tolist():
        one, five = (pairs_of(index.probe(fingerprint ^ 6)) for index in indexes)
        assert one == five
        assert len(one) >= 2
