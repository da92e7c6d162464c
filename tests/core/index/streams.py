"""Fingerprints like those of a crawl: clusters a few bits apart, and blocks that many have in common."""

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tests.core.index.block_index import BlockIndex
from tests.oracle.index import BruteForceIndex

WORD = (1 << 64) - 1
TEMPLATES = (0, WORD, 0x0123456789ABCDEF)
HOT_MASKS = (WORD << 16 & WORD, WORD >> 16, 0x00000FFF00000FFF, 0xFFFF)


@st.composite
def fingerprints(draw: st.DrawFn) -> int:
    """Return a template with up to nine bits flipped, or one that shares a block or more with a template."""
    template = draw(st.sampled_from(TEMPLATES))
    if draw(st.booleans()):
        for bit in draw(st.lists(st.integers(0, 63), max_size=9)):
            template ^= 1 << bit
        return template
    mask = draw(st.sampled_from(HOT_MASKS))
    return (template & ~mask & WORD) | (draw(st.integers(0, WORD)) & mask)


def uniform(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """Return independent fingerprints: uint64[count]."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, dtype=np.uint64)


def hot(count: int, seed: int, block: int = 1) -> npt.NDArray[np.uint64]:
    """Return fingerprints with one equal block of 16 bits, independent elsewhere: uint64[count]."""
    mask = np.uint64(0xFFFF << (16 * block))
    return (uniform(count, seed) & ~mask) | (np.uint64(0x5AA5 << (16 * block)) & mask)


def one_half(count: int, seed: int, half: int) -> npt.NDArray[np.uint64]:
    """Return fingerprints with one equal half of 32 bits, independent elsewhere: uint64[count]."""
    mask = np.uint64(0xFFFF_FFFF << (32 * half))
    return (uniform(count, seed) & ~mask) | (np.uint64(0x0123_4567_89AB_CDEF) & mask)


def agree(index: BlockIndex, oracle: BruteForceIndex, probes: list[int]) -> None:
    """Assert that every probe, one by one and as a batch, finds what brute force finds."""
    for fingerprint, found in zip(probes, index.probe_many(probes), strict=True):
        assert index.probe(fingerprint) == found == oracle.probe(fingerprint)
    assert len(index) == len(oracle.entries)
