"""Look words up in the text of an IDF table as it stands, without a Python object for each of its lines.

A dictionary of jieba's 270,132 words takes a quarter of a second and 45 MB in every process; reading the
bytes and hashing each word in place takes a tenth of both. Lines are `word value`, the value a plain decimal.
All arrays: data uint8[n], the text in UTF-8, a line break after the last line; starts int32[m], where each line begins.

Inverse document frequency: how much a word says, from how few pages hold it.

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
from dedup_service.core.hash_table import table_size
from dedup_service.core.kernels import kernel

__all__ = ["IdfTable", "build_idf", "find_lines", "read_lines", "slots_of"]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int32]

_BREAK, _SPACE, _POINT, _ZERO, _NINE = 10, 32, 46, 48, 57
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
MAX_DIGITS = 18  # more would overflow; no idf needs them


@kernel
def read_lines(data: Bytes) -> tuple[Places, npt.NDArray[np.float64], int]:
    """Return where lines start, their values float64[m], and the number of the first bad line, 0 for none."""
    count = 0
    for byte in data:
        count += byte == _BREAK
    starts = np.empty(count, dtype=np.int32)
    values = np.empty(count, dtype=np.float64)
    at = 0
    for line in range(count):
        starts[line] = at
        space = -1
        while data[at] != _BREAK:
            if data[at] == _SPACE:
                space = at
            at += 1
        value = _decimal(data, space + 1, at)
        if space <= starts[line] or value < 0:
            return starts, values, line + 1
        values[line] = value
        at += 1
    return starts, values, 0


@kernel
def _decimal(data: Bytes, start: int, stop: int) -> float:
    """The number written in data[start:stop], -1 where it is none. Exact as float() is, up to 15 digits."""
    number, scale, digits, points = 0, 1.0, 0, 0
    for at in range(start, stop):
        byte = data[at]
        if byte == _POINT:
            points += 1
        elif _ZERO <= byte <= _NINE:
            digits += 1
            if digits <= MAX_DIGITS:
                number = number * 10 + int(byte) - _ZERO
                if points:
                    scale *= 10.0
            elif not points:
                return -1.0
        else:
            return -1.0
    return number / scale if digits and points <= 1 else -1.0


@kernel
def _hash(data: Bytes, start: int, stop: int) -> np.uint64:
    """FNV-1a with a last mixing step (Fowler, Noll, Vo 1991); it only spreads words over slots."""
    value = _FNV_START
    for at in range(start, stop):
        value = (value ^ np.uint64(data[at])) * _FNV_PRIME
    return value ^ (value >> np.uint64(29))


@kernel
def _word_end(data: Bytes, start: int) -> int:
    """The place of the last space of the line that begins at `start`."""
    at, space = start, start
    while data[at] != _BREAK:
        if data[at] == _SPACE:
            space = at
        at += 1
    return space


@kernel
def slots_of(data: Bytes, starts: Places) -> Places:
    """Return an open-addressed table int32[size] of line numbers by word, -1 where empty; a later line wins."""
    slots = np.full(table_size(len(starts)), -1, dtype=np.int32)
    for line in range(len(starts)):
        start = starts[line]
        stop = _word_end(data, start)
        slots[_slot(data, starts, slots, data[start:stop])] = line
    return slots


@kernel
def _slot(data: Bytes, starts: Places, slots: Places, word: Bytes) -> int:
    """The slot where `word` is, or would be."""
    mask = np.uint64(len(slots) - 1)
    place = _hash(word, 0, len(word)) & mask
    while slots[place] >= 0:
        start = starts[slots[place]]
        if _word_end(data, start) == start + len(word):
            same = True
            for i in range(len(word)):
                if data[start + i] != word[i]:
                    same = False
                    break
            if same:
                break
        place = (place + np.uint64(1)) & mask
    return int(place)


@kernel
def find_lines(data: Bytes, starts: Places, slots: Places, words: Bytes, ends: npt.NDArray[np.int64]) -> Places:
    """Return the line of each word, -1 where it has none: int32[k]; words: their UTF-8 bytes; ends: where each ends."""
    lines = np.empty(len(ends), dtype=np.int32)
    start = 0
    for i in range(len(ends)):
        lines[i] = slots[_slot(data, starts, slots, words[start : ends[i]])]
        start = ends[i]
    return lines


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


def build_idf(pages: Iterable[Iterable[str]], *, minimum: int = 2) -> list[str]:
    """Count the pages that hold each word and return the lines of their table, in order of the words.

    Words on fewer than `minimum` pages are left out: the default serves them.
    """
    held: Counter[str] = Counter()
    total = 0
    for words in pages:
        held.update(set(words))
        total += 1
    kept = sorted((word, count) for word, count in held.items() if count >= minimum)
    return [f"{word} {math.log(total / count):.6f}\n" for word, count in kept]
