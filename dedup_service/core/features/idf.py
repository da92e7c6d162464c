"""Inverse document frequency: how much a word says, from how few pages contain it.

idf(i) = log(|D| / |{j : tᵢ ∈ dⱼ}|) (source: Wang & Wang 2019, section 2; Zhang & He 2020 use the same). A
word that the table lacks gets the median of the table, as in jieba. The table is fixed for a space: live
weights would move the fingerprints of unchanged pages.

A table is a text of lines `word value`, the value a plain decimal. Words are looked up in the bytes of that
text, without a Python object for each line: a dictionary of jieba's 270,132 words takes a quarter of a
second and 45 MB in every process; reading the bytes and hashing each word in place takes a tenth of both.
The hash table has line numbers, not keys, since the keys are in the text.

Arrays: data uint8[n] is the text in UTF-8, with a line break after the last line; starts int32[m] is where
each line begins; slots int32[size] is the hash table.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.hash_table import table_size
from dedup_service.core.kernels import kernel, prefetch

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int32]

_BREAK, _SPACE, _POINT, _ZERO, _NINE = 10, 32, 46, 48, 57
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SEPARATOR, _SEPARATOR_BYTE = b"\xff", 0xFF
MAX_DIGITS = 18  # more would overflow, and no IDF needs them


@kernel
def read_lines(data: Bytes) -> tuple[Positions, npt.NDArray[np.float64], int]:
    """Return where lines start, their values float64[m], and the number of the first bad line or 0."""
    count = 0
    for byte in data:
        count += byte == _BREAK
    starts = np.empty(count, dtype=np.int32)
    values = np.empty(count, dtype=np.float64)
    i = 0
    for line in range(count):
        starts[line] = i
        space = -1
        while data[i] != _BREAK:
            if data[i] == _SPACE:
                space = i
            i += 1
        value = _decimal(data, space + 1, i)
        if space <= starts[line] or value < 0:
            return starts, values, line + 1
        values[line] = value
        i += 1
    return starts, values, 0


@kernel
def _decimal(data: Bytes, start: int, stop: int) -> float:
    """Return the number in data[start:stop], as exact as float() up to 15 digits; -1 if it is not one."""
    number, scale, digits, points = 0, 1.0, 0, 0
    for i in range(start, stop):
        byte = data[i]
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
    """Return FNV-1a (Fowler, Noll, Vo 1991) with a last mixing step; it only spreads words over slots."""
    value = _FNV_START
    for i in range(start, stop):
        value = (value ^ np.uint64(data[i])) * _FNV_PRIME
    return value ^ (value >> np.uint64(29))


@kernel
def _word_end(data: Bytes, start: int) -> int:
    """Return the position of the last space of the line that begins at `start`."""
    i, space = start, start
    while data[i] != _BREAK:
        if data[i] == _SPACE:
            space = i
        i += 1
    return space


@kernel
def slots_of(data: Bytes, starts: Positions) -> Positions:
    """Return the hash table of line numbers by word, -1 for an empty slot; later lines of a word win."""
    slots = np.full(table_size(len(starts)), -1, dtype=np.int32)
    for line in range(len(starts)):
        start = starts[line]
        stop = _word_end(data, start)
        slots[_slot(data, starts, slots, data[start:stop])] = line
    return slots


@kernel
def _slot(data: Bytes, starts: Positions, slots: Positions, word: Bytes) -> int:
    """Return the slot of `word`, or the empty slot where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = _hash(word, 0, len(word)) & mask
    while slots[slot] >= 0:
        start = starts[slots[slot]]
        if _word_end(data, start) == start + len(word):
            same = True
            for i in range(len(word)):
                if data[start + i] != word[i]:
                    same = False
                    break
            if same:
                break
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@kernel
def find_values(
    table: tuple[Bytes, Positions, Positions, npt.NDArray[np.float64]], default: float, words: Bytes, count: int
) -> npt.NDArray[np.float64]:
    """Return the value of each of `count` words, the default for an unknown one: float64[count].

    table: the text of the table, where its lines start, the hash table of lines, and their values. words: in UTF-8,
    with a byte between two that is in no text.

    A word waits for memory four times, one after the other: for its slot, its line, the text of that, its value. So
    each step is asked for all words before the next one is taken.
    """
    data, starts, slots, values = table
    found = np.full(count, default)
    mask = np.uint64(len(slots) - 1)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    homes = np.empty(count, np.int64)
    start = number = 0
    for end in range(len(words) + 1):
        if end < len(words) and words[end] != _SEPARATOR_BYTE:
            continue
        if number < count:
            begins[number], ends[number] = start, end
            homes[number] = np.int64(_hash(words, start, end) & mask)
            prefetch(slots, homes[number])
        start, number = end + 1, number + 1
    for home in homes:
        if slots[home] >= 0:
            prefetch(starts, slots[home])
            prefetch(values, slots[home])
    for home in homes:
        if slots[home] >= 0:
            prefetch(data, starts[slots[home]])
    for number in range(count):
        line = slots[_slot(data, starts, slots, words[begins[number] : ends[number]])]
        if line >= 0:
            found[number] = values[line]
    return found


class IdfTable:
    """The table in a text of lines `word value`: the format of jieba's idf.txt, natural logarithms ≥ 0.

    Raises ConfigurationError with the number of the first line that is not in this format.
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

    def idf_of(self, word: str) -> float:
        """Return the IDF of `word`, or the default (the median) if the table lacks it."""
        return float(self.idfs_of([word])[0])

    def idfs_of(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the IDF of each of `words`: float64[n]."""
        joined = _SEPARATOR.join([word.encode("utf-8", "surrogatepass") for word in words])
        table = (self._data, self._starts, self._slots, self._values)
        return find_values(table, self.default, np.frombuffer(joined, np.uint8), len(words))


def build_idf(pages: Iterable[Iterable[str]], *, min_pages: int = 2) -> list[str]:
    """Count the pages that contain each word, and return the lines of a table, sorted by word.

    pages: the words of each page. Words on fewer than `min_pages` pages are left out and get the default.
    """
    page_counts: Counter[str] = Counter()
    total = 0
    for words in pages:
        page_counts.update(set(words))
        total += 1
    frequent = sorted((word, count) for word, count in page_counts.items() if count >= min_pages)
    return [f"{word} {math.log(total / count):.6f}\n" for word, count in frequent]
