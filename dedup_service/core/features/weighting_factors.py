"""The factors that the published schemes multiply, one function each.

Each returns one value for each of the n words of a table: float64[n].
Sources:
S2: the notes on the principle of SimHash (segment, hash, weigh with levels 1 to 5, merge, reduce).
S3: Wang & Wang 2019: 王诚, 王宇成: 基于Simhash的大规模文档去重改进算法研究. 计算机技术与发展, 2019 (2).
S4: Zhang & He 2020, Hans Publishers, article 34304. Values marked * are ours: the formulas of the paper were
images that are lost.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.features.words import WordTable

PEAK_LENGTH = 4.51
LENGTH_SPREAD = 2.207
POS_WEIGHTS = (("n", 3.0), ("v", 2.0))

Floats = npt.NDArray[np.float64]


def term_frequency(table: WordTable, kind: str) -> Floats:
    """Return the count n (`raw`), n / Σn (`relative`, S3 formula 1) or 1 + ln n (`log`, ours)."""
    counts: Floats = table.counts.astype(np.float64)
    if kind == "relative":
        counts = counts / counts.sum()
    elif kind == "log":
        counts = 1.0 + np.log(counts)
    return counts


def levels(values: Floats) -> Floats:
    """Return the quintile of each value within the page, 1.0 to 5.0, the same for equal values (S2)."""
    below = np.searchsorted(np.sort(values), values, side="left")
    return 1.0 + np.floor(5.0 * below / max(len(values), 1))


def gauss_length(table: WordTable, *, as_sigma: bool = True) -> Floats:
    """Return 1 + len(x), len a Gaussian of the length x in characters, peak 1 at 4.51 (S3).

    as_sigma: exp(−(x − 4.51)² / (2·2.207²)); otherwise 2.207 is the fitting tool's c: exp(−((x − 4.51) /
    2.207)²).
    """
    off = (_lengths(table) - PEAK_LENGTH) / LENGTH_SPREAD
    result: Floats = 1.0 + np.exp(-(off**2) / (2.0 if as_sigma else 1.0))
    return result


def minmax_length(table: WordTable) -> Floats:
    """Return 1* + (l − l_min) / (l_max − l_min), l the length of a word; 1 if all are equal (S4)."""
    lengths = _lengths(table)
    span = np.ptp(lengths) if len(lengths) else 0.0
    return 1.0 + (lengths - lengths.min()) / span if span else np.ones(len(lengths))


def part_of_speech(table: WordTable) -> Floats:
    """Return 3* for nouns, 2* for verbs, 1* for others, by the first letter of the tag (S4)."""
    weights = dict(POS_WEIGHTS)
    return np.array([weights.get(tag[:1], 1.0) for tag in table.parts_of_speech], dtype=np.float64)


def marker(table: WordTable, weight: float) -> Floats:
    """Return `weight` (S4: 5) for words that are marked, else 1."""
    return np.where(table.marked, weight, 1.0)


def title(table: WordTable, weight: float) -> Floats:
    """Return `weight` (S4: 5) for words of the title, else 1."""
    return np.where(table.in_title, weight, 1.0)


def _lengths(table: WordTable) -> Floats:
    return np.array([len(word) for word in table.words], dtype=np.float64)
