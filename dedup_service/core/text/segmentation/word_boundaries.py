r"""Unicode word boundaries in compiled loops, and pairs of characters for scripts without spaces.

1. Each code point has a kind: its word-break property by the `regex` library, and apart from others of that property
   vowels, the curly apostrophe and pictographs, which rules name.
2. A state machine reads a text from left to right. Its state is the kind of the last character, where marks and
   invisible characters do not count. State and next kind say what the state is then and whether there is a boundary
   between the two; the few rules that ask for a third character (`don't`, `3.14`) are looked at apart.
3. In a text with a script without spaces, neighbouring pieces of such scripts are joined and become pairs.

Boundaries are those of `(?w)\b` in the `regex` library, the reference of the tests. It departs from the annex where
rules ask for a third character (marks count there), for half a flag and marks at the beginning of a text (they belong
to what follows), and between an apostrophe and a vowel (no boundary: `l'amour`). A run of 64 letters of flags or more
is one piece, and what follows it is cut like the beginning of a text.

Source: Unicode Standard Annex 29, section 4.1.1 (rules WB1 to WB999)
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from dedup_service.core.kernels import kernel_inline, long_kernel

_Points = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

MAX_FLAG_LETTERS = 64
"""Letters of flags in a row; no text has so many."""

_CODES = 0x110000
_CURLY = "\u2019"
_VOWELS = "aàáâeèéêiìíîoòóôuùúûAÀÁÂEÈÉÊIÌÍÎOÒÓÔUÙÚÛ\u0130"
_UNSPACED_SCRIPTS = ("Thai", "Lao", "Khmer", "Myanmar", "Hiragana", "Katakana", "Han")

# Kinds; the last two are only states: before the first character, and before one that the last belongs to.
(
    _OTHER, _CR, _LF, _NEWLINE, _SPACE, _DOUBLE_QUOTE, _SINGLE_QUOTE, _CURLY_QUOTE, _MID_NUM, _MID_NUM_LET, _MID_LETTER,
    _NUMERIC, _LETTER, _VOWEL, _PICTOGRAPH_LETTER, _HEBREW, _EXTEND_NUM_LET, _IGNORED, _JOINER, _KATAKANA, _FLAG,
    _PICTOGRAPH, _START, _GLUE,
) = range(24)  # fmt: skip
UNSPACED = 32
"""The bit of a character in a script without spaces, beside its kind."""

_STATES = 32
_KIND = np.uint64(_STATES - 1)
_JOIN, _BREAK, _LOOK = 0, 1, 2
"""Verdicts on two characters: no boundary between them, a boundary, a third one decides."""

_OF_PROPERTY = {
    "CR": _CR, "LF": _LF, "Newline": _NEWLINE, "WSegSpace": _SPACE, "DoubleQuote": _DOUBLE_QUOTE,
    "SingleQuote": _SINGLE_QUOTE, "MidNum": _MID_NUM, "MidNumLet": _MID_NUM_LET, "MidLetter": _MID_LETTER,
    "Numeric": _NUMERIC, "ALetter": _LETTER, "HebrewLetter": _HEBREW, "ExtendNumLet": _EXTEND_NUM_LET,
    "Format": _IGNORED, "Extend": _IGNORED, "ZWJ": _JOINER, "Katakana": _KATAKANA, "RegionalIndicator": _FLAG,
}  # fmt: skip


def _bits(*kinds: int) -> int:
    return sum(1 << kind for kind in set(kinds))


_NEWLINES = _bits(_CR, _LF, _NEWLINE)
_LETTERS = _bits(_LETTER, _VOWEL, _PICTOGRAPH_LETTER, _HEBREW)
_INVISIBLE = _bits(_IGNORED, _JOINER)
_PICTOGRAPHS = _bits(_PICTOGRAPH, _PICTOGRAPH_LETTER)
_APOSTROPHES = _bits(_SINGLE_QUOTE, _CURLY_QUOTE)
_MID_LETTERS = _APOSTROPHES | _bits(_MID_NUM_LET, _MID_LETTER)
_MID_NUMBERS = _APOSTROPHES | _bits(_MID_NUM_LET, _MID_NUM)
_WORDS = _LETTERS | _bits(_NUMERIC, _EXTEND_NUM_LET)
_KANA = _bits(_KATAKANA, _EXTEND_NUM_LET)


class Kinds(NamedTuple):
    """Tables for kernels. of_points: of each code point its kind, and UNSPACED or 0, uint8[1114112].

    steps: of each state and kind, 32 kinds a state, the next state and 32 times the verdict, uint8[1024].
    """

    of_points: _Bytes
    steps: _Bytes


@cache
def kinds_of_code_points() -> Kinds:
    """Return the tables: properties are those of the installed `regex`."""
    points = np.arange(_CODES, dtype=np.uint32)
    characters = str(points.data, "utf-32-le", "surrogatepass")
    of_points = np.zeros(_CODES, np.uint8)
    for name, kind in _OF_PROPERTY.items():
        for found in regex.finditer(rf"\p{{WB={name}}}+", characters):
            of_points[found.start() : found.end()] = kind
    for vowel in _VOWELS:
        of_points[ord(vowel)] = _VOWEL
    of_points[ord(_CURLY)] = _CURLY_QUOTE
    for found in regex.finditer(r"\p{Extended_Pictographic}+", characters):
        of_run = of_points[found.start() : found.end()]
        of_run[:] = np.where(of_run == _LETTER, _PICTOGRAPH_LETTER, _PICTOGRAPH)
    for script in _UNSPACED_SCRIPTS:
        for found in regex.finditer(rf"\p{{{script}}}+", characters):
            of_points[found.start() : found.end()] |= UNSPACED
    steps = [
        _verdict(state, kind) * _STATES + _next(state, kind) for state in range(_STATES) for kind in range(_STATES)
    ]
    return Kinds(of_points, np.array(steps, np.uint8))


def _verdict(state: int, kind: int) -> int:
    """Return whether there is a boundary before a character of a kind."""
    before, after = 1 << state, 1 << kind
    if kind == _FLAG:
        return _LOOK  # a long run of them may begin
    if state == _START or (state, kind) == (_CR, _LF):
        return _JOIN
    if (before | after) & _NEWLINES:
        return _BREAK
    if state in {_GLUE, _FLAG} or after & _INVISIBLE or _are_joined(state, kind):
        return _JOIN
    return _LOOK if after & _PICTOGRAPHS or _may_be_joined(state, kind) else _BREAK


def _are_joined(state: int, kind: int) -> bool:
    """Whether there is no boundary between characters of two kinds, whatever is beside them."""
    both = _bits(state, kind)
    if not both & ~_WORDS or not both & ~_KANA or state == kind == _SPACE:
        return True
    return bool(1 << state & _APOSTROPHES and kind == _VOWEL) or (state, kind) == (_HEBREW, _SINGLE_QUOTE)


def _may_be_joined(state: int, kind: int) -> bool:
    """Whether there is no boundary between characters of two kinds if a third one is of a word or a number, too."""
    before, after = 1 << state, 1 << kind
    in_word = (before & _LETTERS and after & _MID_LETTERS) or (before & _MID_LETTERS and after & _LETTERS)
    in_number = (state == _NUMERIC and after & _MID_NUMBERS) or (before & _MID_NUMBERS and kind == _NUMERIC)
    return bool(in_word or in_number) or {state, kind} == {_HEBREW, _DOUBLE_QUOTE}


def _next(state: int, kind: int) -> int:
    """Return the state after a character of a kind."""
    if 1 << kind & _INVISIBLE:
        if state in {_START, _GLUE, _FLAG}:
            return _GLUE
        return _OTHER if 1 << state & (_NEWLINES | 1 << _SPACE) else state
    return _OTHER if state == kind == _FLAG else kind  # the second letter completes the flag


@long_kernel
def word_ends(
    points: _Points, starts: _Places, bodies: _Places, of_points: _Bytes, steps: _Bytes
) -> tuple[_Places, _Places, _Places, bool]:
    """Return where the words of n pages and the pieces between them end, ascending: int64[k].

    With them, as numbers of words and pieces: where each page begins, and the end of the last one, int64[n + 1], and
    where each body ends, int64[n]; and whether there is any character of a script without spaces. points, starts,
    bodies: of `PageTexts`; each title and body is cut alone. of_points, steps: of `Kinds`.
    """
    ends = np.empty(len(points), np.int64)
    first, of_body = np.zeros(len(starts), np.int64), np.empty(len(bodies), np.int64)
    found, seen = 0, np.uint64(0)
    for page in range(len(bodies)):
        found, seen = part_ends(points, starts[page], bodies[page], Kinds(of_points, steps), ends, found, seen)
        of_body[page] = found
        found, seen = part_ends(points, bodies[page], starts[page + 1], Kinds(of_points, steps), ends, found, seen)
        first[page + 1] = found
    return ends[:found], first, of_body, bool(seen & np.uint64(UNSPACED))


@kernel_inline
def part_ends(
    points: _Points, begin: int, end: int, kinds: Kinds, ends: _Places, found: int, seen: np.uint64
) -> tuple[int, np.uint64]:
    """Write where the words of points[begin : end] end, after `found` others; return their number, and seen | kinds."""
    state = np.uint64(_START)
    at = begin
    while at < end:
        bits = np.uint64(kinds.of_points[points[np.uint64(at)]])
        seen |= bits
        kind = bits & _KIND
        step = np.uint64(kinds.steps[state * np.uint64(_STATES) + kind])
        verdict = int(np.int64(step >> np.uint64(5)))
        if verdict == _LOOK:
            if kind == np.uint64(_FLAG) and (at == begin or kind_at(points, at - 1, kinds) != _FLAG):
                after_flags = end_of_flags(points, at, end, kinds)
                if after_flags - at >= MAX_FLAG_LETTERS:
                    ends[np.uint64(found)] = at
                    ends[np.uint64(found + (state != np.uint64(_START)))] = after_flags
                    found += 1 + (state != np.uint64(_START))
                    begin = at = after_flags
                    state = np.uint64(_START)
                    continue
            verdict = 0 if is_joined(points, at, begin, end, int(np.int64(state)), int(np.int64(kind)), kinds) else 1
        ends[np.uint64(found)] = at
        found += verdict
        state = step & _KIND
        at += 1
    if state != np.uint64(_START):
        ends[np.uint64(found)] = end
        found += 1
    return found, seen


@kernel_inline
def kind_at(points: _Points, at: int, kinds: Kinds) -> int:
    """Return the kind of a character."""
    return int(np.int64(kinds.of_points[points[np.uint64(at)]] & np.uint8(_STATES - 1)))


@kernel_inline
def end_of_flags(points: _Points, at: int, end: int, kinds: Kinds) -> int:
    """Return where a run of letters of flags ends."""
    while at < end and kind_at(points, at, kinds) == _FLAG:
        at += 1
    return at


@kernel_inline
def is_one_of(kind: int, several: int) -> bool:
    """Whether a kind is among several, given as bits."""
    return bool((several >> kind) & 1)


@kernel_inline
def is_joined(points: _Points, at: int, begin: int, end: int, state: int, kind: int, kinds: Kinds) -> bool:
    """Whether there is no boundary before points[at], where the verdict of state and kind is to look."""
    if kind == _FLAG:
        return state in (_FLAG, _GLUE, _START)
    left = at - 1
    if is_one_of(kind, _PICTOGRAPHS) and kind_at(points, left, kinds) == _JOINER:
        return True
    after = kind_at(points, at + 1, kinds) if at + 1 < end else _OTHER
    if is_one_of(state, _LETTERS):
        is_quote = state == _HEBREW and kind == _DOUBLE_QUOTE and after == _HEBREW
        return is_quote or (is_one_of(kind, _MID_LETTERS) and is_one_of(after, _LETTERS))
    if state == _NUMERIC:
        return is_one_of(kind, _MID_NUMBERS) and after == _NUMERIC
    while left > begin and is_one_of(kind_at(points, left, kinds), _INVISIBLE):
        left -= 1
    before = kind_at(points, left - 1, kinds) if left > begin else _OTHER
    if kind == _NUMERIC:
        return is_one_of(state, _MID_NUMBERS) and before == _NUMERIC
    is_quote = state == _DOUBLE_QUOTE and kind == _HEBREW and before == _HEBREW
    return is_quote or (is_one_of(state, _MID_LETTERS) and is_one_of(kind, _LETTERS) and is_one_of(before, _LETTERS))


@long_kernel
def in_pairs(
    points: _Points, ends: _Places, starts: _Places, bodies: _Places, of_points: _Bytes
) -> tuple[_Points, _Places, _Places, _Places]:
    """Return the segments of pages with runs of scripts without spaces as overlapping pairs of characters.

    A run is of neighbouring pieces of a title or a body that have no other character; one of two characters or fewer
    stays. ends, starts, bodies, also those returned: as `word_ends` returns them. Returned points: of all segments, one
    after the other.
    """
    written, written_ends = np.empty(2 * len(points), np.uint32), np.empty(len(points), np.int64)
    first, of_body = np.zeros(len(starts), np.int64), np.empty(len(bodies), np.int64)
    found = size = begin = 0
    for page in range(len(bodies)):
        for part in range(2):
            run = begin
            for i in range(bodies[page] if part else starts[page], starts[page + 1] if part else bodies[page]):
                if not is_unspaced(points, begin, ends[i], of_points):
                    found, size = write_pairs(points, run, begin, written, written_ends, found, size)
                    found, size = write_segment(points, begin, ends[i], written, written_ends, found, size)
                    run = ends[i]
                begin = ends[i]
            found, size = write_pairs(points, run, begin, written, written_ends, found, size)
            if part == 0:
                of_body[page] = found
        first[page + 1] = found
    return written[:size], written_ends[:found], first, of_body


@kernel_inline
def is_unspaced(points: _Points, begin: int, end: int, of_points: _Bytes) -> bool:
    """Whether all characters of a piece are of scripts without spaces."""
    bits = np.uint8(UNSPACED)
    for at in range(begin, end):
        bits &= of_points[points[np.uint64(at)]]
    return bool(bits)


@kernel_inline
def write_pairs(
    points: _Points, begin: int, end: int, written: _Points, written_ends: _Places, found: int, size: int
) -> tuple[int, int]:
    """Write a run as pairs, one of two characters or fewer as it is; return the number of segments, and their size."""
    if end - begin < 3:
        return write_segment(points, begin, end, written, written_ends, found, size) if begin < end else (found, size)
    for at in range(begin, end - 1):
        found, size = write_segment(points, at, at + 2, written, written_ends, found, size)
    return found, size


@kernel_inline
def write_segment(
    points: _Points, begin: int, end: int, written: _Points, written_ends: _Places, found: int, size: int
) -> tuple[int, int]:
    """Write points[begin : end] as the next segment; return the number of segments, and their size."""
    for at in range(begin, end):
        written[np.uint64(size)] = points[np.uint64(at)]
        size += 1
    written_ends[np.uint64(found)] = size
    return found + 1, size
