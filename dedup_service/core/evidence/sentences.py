"""The sentences of a text, as values of 32 bits: 26 bits of a hash, and the length.

A sentence is a run of letters and digits between two ends; everything else is left out. It ends at a line
break, at the marks of its language, at a full stop before a space, and at a space after a Thai or Lao
letter. Sentences of fewer than MIN_SENTENCE letters are ignored.

A value is `hash << 6 | quarters`, where `quarters` is the number of letters divided by four and rounded, at
most 63. Values are ordered by the hash, so the smallest values of a text are a sample that does not depend
on the lengths.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel, kernel_inline
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.normalise import is_letter_above, letter_table

MIN_SENTENCE = 6
"""Letters of a sentence; shorter ones are interjections and labels."""

LENGTH_BITS, LETTERS_A_QUARTER = 6, 4

_LETTER, _END, _STOP = 1, 2, 3
_ENDS = "。！？!?；;…؟۔।\n"
_PLANE = 0x10000
_LONGEST = (1 << LENGTH_BITS) - 1
_S38 = np.uint64(38)
_S6 = np.uint64(LENGTH_BITS)


def _kinds() -> npt.NDArray[np.uint8]:
    """Return uint8[65536]: the kind of each character of the first plane, 0 for all else."""
    kinds = letter_table().astype(np.uint8) * np.uint8(_LETTER)
    for text, kind in ((_ENDS, _END), (".", _STOP)):
        for character in text:
            kinds[ord(character)] = kind
    return kinds


ENDS = _kinds()
"""What each character is to a sentence, for `sentence_values`."""


@kernel
def sentence_values(code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return the values of the distinct sentences of a folded text, ascending: uint32[n].

    code_points: uint32[k]. kinds: ENDS.
    """
    return np.unique(sentences_in_order(code_points, kinds)[0])


@kernel
def sentences_in_order(
    code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], int]:
    """Return the values of all sentences of a folded text, uint32[n], where they are, and the letters of the text.

    Where they are: the letters of the text before each sentence, and up to its end: int64[n, 2].
    code_points: uint32[k]. kinds: ENDS.
    """
    count = len(code_points)
    values = np.empty(count // MIN_SENTENCE + 1, dtype=np.uint32)
    places = np.empty((len(values), 2), dtype=np.int64)
    found = letters = before = 0
    sentence = np.uint64(0)
    for i in range(count + 1):
        code = code_points[i] if i < count else np.uint32(10)
        kind = kinds[code] if code < np.uint32(_PLANE) else np.uint8(_LETTER * is_letter_above(code))
        if kind == _LETTER:
            letters += 1
            sentence = sentence * GAMMA + np.uint64(code)
            continue
        if kind == _END or _ends_here(code_points, i, kind):
            if letters >= MIN_SENTENCE:
                quarters = min((letters + LETTERS_A_QUARTER // 2) // LETTERS_A_QUARTER, _LONGEST)
                values[found] = np.uint32((mix64_in_kernel(sentence) >> _S38) << _S6 | np.uint64(quarters))
                places[found, 0], places[found, 1] = before, before + letters
                found += 1
            before += letters
            letters, sentence = 0, np.uint64(0)
    return values[:found], places[:found], before


@kernel_inline
def _ends_here(code_points: npt.NDArray[np.uint32], i: int, kind: np.uint8) -> bool:
    """Whether a sentence ends at `i`: a full stop before a space, or a space after a Thai or Lao letter."""
    if kind == _STOP:
        return i + 1 >= len(code_points) or code_points[i + 1] == np.uint32(32)
    if i == 0 or i >= len(code_points):
        return False
    return bool(code_points[i] == np.uint32(32) and np.uint32(0x0E00) <= code_points[i - 1] < np.uint32(0x0F00))
