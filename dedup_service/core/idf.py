"""Inverse document frequency: how much a word says, from how few pages hold it.

idf(i) = log(|D| / |{j : tᵢ ∈ dⱼ}|) (source: Wang & Wang 2019, section 2; Zhang & He 2020 use the same).
A word that the table lacks gets the table's median, as jieba does. The table is fixed for a space: live
weights would move the fingerprints of unchanged pages.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Self

import numpy as np

from dedup_service.core.errors import ConfigurationError

__all__ = ["IdfTable"]


@dataclass(frozen=True, slots=True)
class IdfTable:
    """word → idf (natural logarithm, ≥ 0), and the value of every other word."""

    values: Mapping[str, float]
    default: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read lines of `word value`, the format of jieba's idf.txt; ConfigurationError names a bad line."""
        parts = [line.rpartition(" ") for line in text.splitlines()]
        try:
            values = {word: float(value) for word, _, value in parts}
        except ValueError:
            values = {}
        if "" in values or (parts and not values):
            raise ConfigurationError(_complaint(text))
        return cls(values, float(np.median(np.fromiter(values.values(), np.float64))) if values else 1.0)

    @classmethod
    def build(cls, pages: Iterable[Iterable[str]], *, least: int = 2) -> Self:
        """Count the pages that hold each word and return its idf; words on fewer than `least` pages are left out."""
        held: Counter[str] = Counter()
        total = 0
        for words in pages:
            held.update(set(words))
            total += 1
        values = {word: math.log(total / count) for word, count in sorted(held.items()) if count >= least}
        return cls(values, median(values.values()) if values else 1.0)

    def lines(self) -> Iterable[str]:
        """The table as `parse` reads it."""
        return (f"{word} {value:.6f}\n" for word, value in self.values.items())

    def of(self, word: str) -> float:
        """The idf of `word`, or the default."""
        return self.values.get(word, self.default)


def _complaint(text: str) -> str:
    """Name the first line that is no entry of a table."""
    for number, line in enumerate(text.splitlines(), 1):
        word, _, value = line.rpartition(" ")
        try:
            good = bool(word) and float(value) >= 0
        except ValueError:
            good = False
        if not good:
            return f"IDF table, line {number}: expected 'word value', got {line[:80]!r}"
    return "IDF table: no line of it is an entry"
