"""The factors that the published schemes multiply, one function each.

Each returns one value for each of the words of a table.
Sources:
S2: the notes on the principle of SimHash (segment, hash, weigh with levels 1 to 5, merge, reduce).
S3: Wang & Wang 2019: 王诚, 王宇成: 基于Simhash的大规模文档去重改进算法研究. 计算机技术与发展, 2019 (2).
S4: Zhang & He 2020, Hans Publishers, article 34304. Values marked * are ours: the formulas of the paper were
images that are lost.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import exp, floor, log

from dedup_service.core.features.words import WordTable

PEAK_LENGTH = 4.51
LENGTH_SPREAD = 2.207
POS_WEIGHTS = {"n": 3.0, "v": 2.0}


def term_frequency(table: WordTable, kind: str) -> list[float]:
    """Return the count n (`raw`), n / Σn (`relative`, S3 formula 1) or 1 + ln n (`log`, ours)."""
    counts = [float(word.count) for word in table.words]
    if kind == "relative":
        total = sum(counts)
        return [count / total for count in counts]
    return [1.0 + log(count) for count in counts] if kind == "log" else counts


def levels(values: Sequence[float]) -> list[float]:
    """Return the quintile of each value within the page, 1.0 to 5.0, the same for equal values (S2)."""
    ascending = sorted(values)
    return [1.0 + floor(5.0 * bisect_left(ascending, value) / len(values)) for value in values]


def gauss_length(table: WordTable, *, as_sigma: bool = True) -> list[float]:
    """Return 1 + len(x), len a Gaussian of the length x in characters, peak 1 at 4.51 (S3).

    as_sigma: exp(−(x − 4.51)² / (2·2.207²)); otherwise 2.207 is the fitting tool's c: exp(−((x − 4.51) /
    2.207)²).
    """
    spread = 2.0 if as_sigma else 1.0
    return [1.0 + exp(-(((length - PEAK_LENGTH) / LENGTH_SPREAD) ** 2) / spread) for length in _lengths(table)]


def minmax_length(table: WordTable) -> list[float]:
    """Return 1* + (l − l_min) / (l_max − l_min), l the length of a word; 1 if all are equal (S4)."""
    lengths = _lengths(table)
    least, span = min(lengths, default=0), max(lengths, default=0) - min(lengths, default=0)
    return [1.0 + (length - least) / span if span else 1.0 for length in lengths]


def part_of_speech(table: WordTable) -> list[float]:
    """Return 3* for nouns, 2* for verbs, 1* for others, by the first letter of the tag (S4)."""
    return [POS_WEIGHTS.get(tag[:1], 1.0) for tag in table.tags]


def marker(table: WordTable, weight: float) -> list[float]:
    """Return `weight` (S4: 5) for words that are marked, else 1."""
    return [weight if word.is_marked else 1.0 for word in table.words]


def title(table: WordTable, weight: float) -> list[float]:
    """Return `weight` (S4: 5) for words of the title, else 1."""
    return [weight if word.in_title else 1.0 for word in table.words]


def _lengths(table: WordTable) -> list[int]:
    return [len(word.word) for word in table.words]
