"""Repetition of the short-text experiment of the source: city names as words, some of them changed.

The author found a distance of 7 bits for texts of twenty words with a similarity of about .8, and of about 4
bits for .94, so k = 3 does not fit short texts. Here: texts of 20, 100 and 500 words drawn from our own list
of names (numbered beyond its end), a share of which is replaced by other names; DRAWS texts a point, seed 7.
Measured with the rolling hash of the source, and with xxh3.

Source: SimHash introduction with Java code, section 4 and its experiment.
"""

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.features.hashing import HASHES, word_hasher
from dedup_service.core.features.simhash import hamming, simhash

CITIES = (
    *("Lisbon", "Utrecht", "Gdansk", "Bergen", "Malmo", "Turku", "Leipzig", "Basel", "Trieste", "Lyon"),
    *("Porto", "Granada", "Split", "Varna", "Patras", "Izmir", "Tbilisi", "Samarkand", "Lahore", "Mysore"),
    *("Kandy", "Hanoi", "Cebu", "Osaka", "Busan", "Harbin", "Dalian", "Suzhou", "Tainan", "Darwin"),
    *("Hobart", "Nelson", "Arequipa", "Rosario", "Recife", "Quito", "Oaxaca", "Tucson", "Halifax", "Reykjavik"),
)
SIZES = (20, 100, 500)
DRAWS = 300


@dataclass(frozen=True, slots=True)
class FewWords:
    """Distances of texts of `words` words of which `changed` were replaced.

    hash: of the words, java or xxh3. low, high: 5th and 95th percentile of the distances. within: share of
    distances of at most 3 bits.
    """

    hash: str
    words: int
    changed: int
    mean: float
    low: float
    high: float
    within: float


def compute(workspace: Workspace) -> list[FewWords]:
    """Return a row for each hash, size and number of changed words; independent of the evaluation data."""
    del workspace
    return [_point(name, words, changed) for name in HASHES for words in SIZES for changed in _steps(words)]


def text_of(words: int) -> list[str]:
    """Return `words` distinct names."""
    return [CITIES[at % len(CITIES)] + (str(at // len(CITIES)) if at >= len(CITIES) else "") for at in range(words)]


def _steps(words: int) -> list[int]:
    return sorted({round(words * share / 100) for share in (0, 1, 2, 3, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50)})


def _point(name: str, words: int, changed: int) -> FewWords:
    rng = random.Random(f"{SEED} {words} {changed}")
    hash_word = word_hasher(name)
    hashes = [hash_word(word, 64) for word in text_of(2 * words)]
    ones, far = np.ones(words, np.int64), []
    for _ in range(DRAWS):
        drawn = rng.sample(hashes, len(hashes))
        text, others = drawn[:words], drawn[words:]
        far.append(hamming(_fingerprint(text, ones), _fingerprint(others[:changed] + text[changed:], ones)))
    low, high = np.percentile(far, (5, 95))
    return FewWords(
        name, words, changed, float(np.mean(far)), float(low), float(high), float(np.mean(np.array(far) <= 3))
    )


def _fingerprint(hashes: list[int], ones: npt.NDArray[np.int64]) -> int:
    value = simhash(hashes, ones, zero_is_one=True)
    assert value is not None  # with zero_is_one there is always a value
    return value
