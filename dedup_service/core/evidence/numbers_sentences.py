"""The sentences and the numbers of a text, as hashes, in one pass over its characters.

A sentence is a run of letters and digits between two ends; everything else is left out. It ends at a line
break, at the marks of its language, at a full stop before a space, and at a space after a Thai or Lao
letter. Sentences of fewer than MIN_SENTENCE letters are ignored.
A number is a run of digits with points or commas inside, or a run of two or more Chinese numerals, with
which dates and articles of laws are written. The n-th occurrence of a number differs from the first, so
multisets are compared.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.normalise import is_letter_above

__all__ = ["KINDS", "MIN_SENTENCE", "distinct", "numbers_and_sentences", "sampled"]

MIN_SENTENCE = 6
"""Letters of a sentence; shorter ones are interjections and labels."""

_LETTER, _DIGIT, _NUMERAL, _END, _INSIDE, _STOP = 1, 2, 4, 8, 16, 32
_NUMERALS = "〇零一二三四五六七八九十百千万亿两"
_ENDS = "。！？!?；;…؟۔।\n"
_PLANE = 0x10000
_S48 = np.uint64(48)


def _kinds() -> npt.NDArray[np.uint8]:
    """Return uint8[65536]: the kinds of each character of the first plane, as bits."""
    kinds = np.fromiter((_LETTER * chr(code).isalnum() for code in range(_PLANE)), dtype=np.uint8, count=_PLANE)
    for text, kind in (("0123456789", _DIGIT), (_NUMERALS, _NUMERAL), (_ENDS, _END), (".,", _INSIDE), (".", _STOP)):
        for character in text:
            kinds[ord(character)] |= kind
    return kinds


KINDS = _kinds()
"""The kinds of each character, for `numbers_and_sentences`."""


@kernel
def numbers_and_sentences(
    code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the hashes of numbers, uint64[n], and of distinct sentences, uint64[m], of a folded text.

    code_points: uint32[k]. kinds: KINDS.
    """
    numbers, sentences = scan(code_points, kinds)
    return numbered(numbers), distinct(sentences)


@kernel
def sampled(hashes: npt.NDArray[np.uint64], limit: int) -> npt.NDArray[np.uint16]:
    """Return the upper 16 bits of the hashes uint64[n], the `limit` smallest, ascending and distinct."""
    return distinct(hashes >> _S48)[:limit].astype(np.uint16)


@kernel
def distinct(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the distinct values, ascending."""
    ordered = np.sort(values)
    count = 0
    for i in range(len(ordered)):
        if i == 0 or ordered[i] != ordered[count - 1]:
            ordered[count] = ordered[i]
            count += 1
    return ordered[:count]


@kernel
def scan(
    code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the hashes of numbers, uint64[n], and of sentences, uint64[m], in order of occurrence.

    code_points: uint32[k], of a folded text. kinds: KINDS.
    """
    count = len(code_points)
    numbers, sentences = np.empty(count + 1, dtype=np.uint64), np.empty(count + 1, dtype=np.uint64)
    found_numbers = found_sentences = 0
    sentence = number = np.uint64(0)
    letters = digits = 0
    numeral = False
    for i in range(count + 1):
        code = code_points[i] if i < count else np.uint32(10)
        kind = kinds[code] if code < np.uint32(_PLANE) else np.uint8(_LETTER * is_letter_above(code))
        # A digit continues digits, a point or comma between digits too, and a numeral continues numerals.
        is_digit, is_numeral = (kind & _DIGIT) != 0, (kind & _NUMERAL) != 0
        inside = False
        if digits and not numeral and (kind & _INSIDE) and i + 1 < count:
            after = code_points[i + 1]
            inside = np.uint32(48) <= after <= np.uint32(57)
        if digits and not inside and not (is_numeral if numeral else is_digit):
            if not numeral or digits >= 2:
                numbers[found_numbers] = mix64_in_kernel(number)
                found_numbers += 1
            digits, number = 0, np.uint64(0)
        if is_digit or is_numeral or inside:
            if digits == 0:
                numeral = is_numeral
            digits += 1
            number = mix64_in_kernel(number + GAMMA * np.uint64(code))
        if kind & _LETTER:
            letters += 1
            sentence = mix64_in_kernel(sentence + GAMMA * np.uint64(code))
        if (kind & _END) or i == count or _ends_sentence(code_points, i, kind):
            if letters >= MIN_SENTENCE:
                sentences[found_sentences] = sentence
                found_sentences += 1
            letters, sentence = 0, np.uint64(0)
    return numbers[:found_numbers], sentences[:found_sentences]


@kernel
def _ends_sentence(code_points: npt.NDArray[np.uint32], i: int, kind: np.uint8) -> bool:
    """Whether a sentence ends at `i`: a full stop before a space, or a space after a Thai or Lao letter."""
    if kind & _STOP:
        return i + 1 >= len(code_points) or code_points[i + 1] == np.uint32(32)
    return i > 0 and code_points[i] == np.uint32(32) and np.uint32(0x0E00) <= code_points[i - 1] < np.uint32(0x0F00)


@kernel
def numbered(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash for each occurrence of each hash, in ascending order of the latter: uint64[n]."""
    ordered = np.sort(hashes)
    result = np.empty(len(ordered), dtype=np.uint64)
    occurrence = np.uint64(0)
    for i in range(len(ordered)):
        occurrence = occurrence + np.uint64(1) if i and ordered[i] == ordered[i - 1] else np.uint64(0)
        result[i] = mix64_in_kernel(ordered[i] + occurrence * GAMMA)
    return result
