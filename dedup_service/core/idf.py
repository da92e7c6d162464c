"""Inverse document frequency: how much a word says, from how few pages hold it.

idf(i) = log(|D| / |{j : tᵢ ∈ dⱼ}|) (source: Wang & Wang 2019, section 2; Zhang & He 2020 use the same).
A word that the table lacks gets the table's median, as jieba does. The table is fixed for a space: live
weights would move the fingerprints of unchanged pages.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.idf_lines import find_lines, read_lines, slots_of

__all__ = ["IdfTable", "build_idf"]


class IdfTable:
    """The table in a text of lines `word value`, the format of jieba's idf.txt (natural logarithms, ≥ 0).

    Raises ConfigurationError with the number of the first line that is none.
    """

    def __init__(self, text: str) -> None:
        text = text if text.endswith("\n") or not text else text + "\n"
        self._data = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        self._starts, values, bad = read_lines(self._data)
        if bad:
            raise ConfigurationError(
                f"IDF table, line {bad}: expected 'word value', got {text.splitlines()[bad - 1][:80]!r}"
            )
        self._values = values
        self._slots = slots_of(self._data, self._starts)
        self.default = float(np.median(values)) if len(values) else 1.0

    def __len__(self) -> int:
        return len(self._starts)

    def of(self, word: str) -> float:
        """The idf of `word`, or the default: the median."""
        return float(self.of_all([word])[0])

    def of_all(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """The idf of each of `words`: float64[n]."""
        names = [word.encode("utf-8", "surrogatepass") for word in words]
        ends = np.cumsum(np.fromiter(map(len, names), dtype=np.int64, count=len(names)))
        lines = find_lines(self._data, self._starts, self._slots, np.frombuffer(b"".join(names), np.uint8), ends)
        if not len(self._values):
            return np.full(len(words), self.default)
        return np.where(lines >= 0, self._values[lines], self.default)


def build_idf(pages: Iterable[Iterable[str]], *, least: int = 2) -> list[str]:
    """Count the pages that hold each word and return the lines of their table, in order of the words.

    Words on fewer than `least` pages are left out: the default serves them.
    """
    held: Counter[str] = Counter()
    total = 0
    for words in pages:
        held.update(set(words))
        total += 1
    kept = sorted((word, count) for word, count in held.items() if count >= least)
    return [f"{word} {math.log(total / count):.6f}\n" for word, count in kept]
