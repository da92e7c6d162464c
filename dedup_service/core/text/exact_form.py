"""The exact form of a text: what two texts must have in common to be the same text.

Typography counts as nothing: punctuation, quotes, brackets, dashes, spaces, line breaks, hyphens in words,
emoji, and the separators of thousands (1,500 = 1 500 = 1'500 = 1500). Everything else that tells two texts
apart stays: letters and digits, combining vowels and tones, and the signs that give a number its value.

How: one pass over a text that `normalise.fold_exactly` has folded. A table gives each character a kind, and
the kind says when the character is written:

- always: letters, digits, marks of letters, units (% ‰ °), currencies, + × ± ≈ ≥ ✓ ✗ ☐ and all of mathematics
- between digits, spaces aside: a colon, a slash, an asterisk, and dashes, all of them as one hyphen
- before or after a number: < = > and arrows
- a hyphen, minus or en dash directly before a number, if it joins no word or unit to it: -5, $-5, 气温-5, but
  covid-19, 5%-8%; and directly after a single letter that nothing follows: A-
- a point inside a number, and before one unless it follows a letter, as a full stop does: 1.5, .5
- #: beside a Latin letter or digit before it (C#), or before a number; ^ before an exponent, except in m^2,
  which is also written m2; ′ after a digit; stars from two on; a slash in a unit: 5 m/s

A space is written between two digits that something else separates, so 10 12 is not 1012.

Invariants: the form of a text is never longer than the text; the work is linear in its length.
Characters are classed by their general category (Unicode Standard Annex 44). White space is one character, as
`fold` leaves it.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.kernels import kernel, kernel_inline, long_kernel
from dedup_service.core.text.normalise import PLANE, is_letter_above
from dedup_service.core.text.page_text import PageTexts

_NOTHING, _SPACE, _CLOSING, _LETTER, _HAN, _DIGIT, _MARK, _SIGN, _UNIT, _CURRENCY, _DASH, _LONG_DASH = range(12)
_POINT, _COMMA, _APOSTROPHE, _BETWEEN, _COMPARE, _ARROW, _NUMBER_SIGN, _POWER, _STAR, _PRIME = range(12, 22)
# What was left out since the last character written, as bits; grouping separators by their kind.
_SPACES, _COMMAS, _APOSTROPHES, _OTHERS = 1, 2, 4, 8
_REACH = 6
"""Characters that are searched for a number: signs before it are few, and the work stays linear."""
_UNIT_LETTERS = 4
"""Letters of a unit before its slash: km/h, Mbit/s."""
_DEGREE, _RING_ABOVE, _BLANK, _HYPHEN = 0xB0, 0x030A, 0x20, 0x2D
_ZERO, _TWO, _THREE, _LESS, _EQUAL, _GREATER = 0x30, 0x32, 0x33, 0x3C, 0x3D, 0x3E
_AT_MOST, _AT_LEAST = 0x2264, 0x2265
_A, _M, _Z, _SLASH = 0x61, 0x6D, 0x7A, 0x2F

# Characters by kind that the general category does not tell, from the folded forms.
_KINDS_OF = {
    # Quotes, bullets, ellipses; lines under and through a text.
    _NOTHING: "」』|∖∣⋅∙⋆⋮⋯⋰⋱⁒▷◁◸◹◺◻◼◽◾\u0332\u0333\u0335\u0336",
    _SIGN: "+✓✔☑✅✗✘✕✖☒❌❎☐♀♂♭♮",
    _UNIT: "%٪‰؉‱°",
    _DASH: "-‐‒–−",
    _LONG_DASH: "—―⸺⸻─~〜∼",
    _POINT: ".٫",
    _COMMA: ",٬",
    _APOSTROPHE: "'’‘`ʹʺʻʼʽʾʿ",
    _BETWEEN: ":∶/⁄∕*∗",
    _COMPARE: "<=>",
    _ARROW: "▲△▴▵▼▽▾▿⬆⬇⬅➡",
    _NUMBER_SIGN: "#♯",
    _POWER: "^",
    _STAR: "★☆⭐",
    _PRIME: "′",
}
_ARROWS = (range(0x2190, 0x2200), range(0x27F0, 0x2800), range(0x2900, 0x2980))
_BRAILLE = range(0x2801, 0x2900)
# Characters that say the same, first the one written. Of the Han, traditional forms that t2s leaves, since in
# a few words they are simplified characters too.
_SAME = (
    "-‐‒–−—―⸺⸻─~〜∼", ".٫", ":∶", "/⁄∕", "*∗", "#♯", "%٪", "‰؉", "✓✔☑✅", "✗✘✕✖☒❌❎", "★⭐", "×⨯", "≤≦⩽", "≥≧⩾",
    "着著", "背揹", "复覆", "征徵", "干乾", "借藉", "了瞭", "么麼麽",
)  # fmt: skip
_HAN_AND_KANA = (range(0x2E80, 0x3000), range(0x3005, 0x3008), range(0x3041, 0x3100), range(0x31F0, 0x3200),
                 range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00))  # fmt: skip


def exact_form(folded: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the exact form of a text as code points: uint32[n].

    folded: the code points, uint32[m], of the second text of `normalise.fold_exactly`; one character for each run of
    white space.

    >>> from dedup_service.core.text.normalise import code_points
    >>> exact_form(code_points("c++: 1,500 − 15.0 %")).tobytes().decode("utf-32-le")
    'c++1500-15.0%'
    """
    return exact_form_of(folded, *_tables())


def exact_hashes(pages: PageTexts) -> list[tuple[int | None, int | None]]:
    """Return two unsigned 64-bit hashes (xxh3) of each page: of its body, and of title and body; None without a body.

    pages: folded without loss. Hashed are the exact forms, as code points; a code point 0, which no exact form has,
    separates a title from its body.
    """
    forms, places = exact_forms(pages.points, pages.starts, pages.bodies, *_tables())
    view, hashed = forms.data, xxhash.xxh3_64_intdigest
    return [
        (hashed(view[body:end]), hashed(view[start:end])) if body < end else (None, None)
        for start, body, end in places.tolist()
    ]


@long_kernel
def exact_forms(
    points: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.int64],
    bodies: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.uint8],
    plain: npt.NDArray[np.uint16],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the exact forms of n `PageTexts`, of each the title, a 0 and the body, in one array: uint32[k].

    With them where each title and body begin, and where the body ends: int64[n, 3]. kinds, plain: `_tables`.
    """
    written = np.empty(len(points) + len(bodies), np.uint32)
    places = np.empty((len(bodies), 3), np.int64)
    count = 0
    for page in range(len(bodies)):
        places[page, 0] = count
        title = exact_form_of(points[bodies[page] : starts[page + 1]], kinds, plain)
        written[count : count + len(title)] = title
        count += len(title) + 1
        written[count - 1] = 0
        places[page, 1] = count
        body = exact_form_of(points[starts[page] : bodies[page]], kinds, plain)
        written[count : count + len(body)] = body
        count += len(body)
        places[page, 2] = count
    return written[:count], places


@kernel
def exact_form_of(
    codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], plain: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint32]:
    """Return the exact form of the code points uint32[n]: uint32[m]. kinds, plain: `_tables`."""
    written = np.empty(len(codes), dtype=np.uint32)
    count = 0
    last = _NOTHING  # the kind of the last character written, and what was left out since
    skipped = 0
    # Of the current number: the digits of its last run, its separator of thousands, and whether it may have one.
    digits, grouped, groups = 0, 0, False
    for i in range(len(codes)):
        code = codes[i]
        kind = int(kinds[code]) if code < np.uint32(PLANE) else _kind_at(codes, kinds, i)
        # No step is called for what nearly all of a text is: a call counts references to the arrays.
        if kind in (_LETTER, _HAN):
            written[count] = plain[code] if code < np.uint32(PLANE) else code
            count += 1
            last, skipped = kind, 0
            continue
        if kind <= _CLOSING:
            skipped |= _SPACES if kind == _SPACE else _OTHERS
            continue
        if kind != _DIGIT and not _is_written(codes, kinds, i, kind, last, skipped):
            skipped = _with(skipped, kind)
            continue
        if last == _DIGIT and skipped and kind in (_DIGIT, _POINT):
            if _continues(codes, kinds, i, skipped, digits, grouped, groups):
                digits, grouped = 0, skipped & ~_SPACES if skipped != _SPACES else _SPACES
            else:
                written[count] = _BLANK
                count += 1
                last = _NOTHING
        if kind == _DIGIT:
            if last != _DIGIT:
                digits, grouped, groups = 0, 0, code != np.uint32(_ZERO) and last != _POINT
            digits += 1
            written[count] = code
        else:
            written[count] = _plain(codes, kinds, plain, i)
        count += 1
        last, skipped = kind, 0
    return written[:count]


@kernel_inline
def _kind_at(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int) -> int:
    """Return the kind of codes[i]; beyond both ends there is space."""
    if i < 0 or i >= len(codes):
        return _SPACE
    code = codes[i]
    if code < np.uint32(PLANE):
        return int(kinds[code])
    if not is_letter_above(code):
        return _NOTHING
    return _HAN if code >= np.uint32(0x20000) else _LETTER


@kernel_inline
def _is_written(
    codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, kind: int, last: int, skipped: int
) -> bool:
    """Whether codes[i], neither a letter nor a digit, is written.

    last: the kind of the last character written. skipped: what was left out since.
    """
    before, after = _kind_at(codes, kinds, i - 1), _kind_at(codes, kinds, i + 1)
    beyond = _kind_at(codes, kinds, i + 2) if after == _SPACE else after
    near = skipped | _SPACES == _SPACES
    return (
        _SIGN <= kind <= _CURRENCY
        # NFKC makes a space and a mark of ´ and the like; also of ˚, which is typed for a degree.
        or (kind == _MARK and (before != _SPACE or codes[i] == np.uint32(_RING_ABOVE)))
        or (kind in (_DASH, _LONG_DASH) and near and last == _DIGIT and _is_before_digit(codes, kinds, i))
        or (kind == _DASH and _is_minus(codes, kinds, i, before, after))
        or (kind == _DASH and _is_grade(codes, kinds, i, before, after))
        or (kind == _BETWEEN and near and last == _DIGIT and beyond == _DIGIT)
        or (kind == _BETWEEN and _is_of_unit(codes, kinds, i, before, after))
        or (kind == _POINT and after == _DIGIT and _leads_point(before))
        or (kind in (_COMPARE, _ARROW) and _compares(codes, kinds, i, near and last in (_DIGIT, _UNIT, kind)))
        or (kind == _NUMBER_SIGN and (beyond == _DIGIT or _is_before_sharp(codes, i, before)))
        or (kind == _POWER and _is_power(codes, kinds, i, after))
        or (kind == _STAR and _STAR in (before, after))
        or (kind == _PRIME and (before == _DIGIT or (before == _PRIME and last == _PRIME and skipped == 0)))
    )


@kernel_inline
def _with(skipped: int, kind: int) -> int:
    """Return the bits of what was left out, with a character of this kind; a second comma is not grouping."""
    bit = _OTHERS
    if kind == _COMMA:
        bit = _COMMAS if not skipped & _COMMAS else _OTHERS
    elif kind == _APOSTROPHE:
        bit = _APOSTROPHES if not skipped & _APOSTROPHES else _OTHERS
    return skipped | bit


@kernel_inline
def _continues(
    codes: npt.NDArray[np.uint32],
    kinds: npt.NDArray[np.uint8],
    i: int,
    skipped: int,
    digits: int,
    grouped: int,
    groups: bool,
) -> bool:
    """Whether exactly three digits at i continue a number over a separator of thousands."""
    if skipped in (_SPACES, _APOSTROPHES):
        separator = skipped
    elif skipped | _SPACES == _COMMAS | _SPACES:
        separator = _COMMAS
    else:
        return False
    for j in range(i, i + 3):
        if _kind_at(codes, kinds, j) != _DIGIT:
            return False
    if _kind_at(codes, kinds, i + 3) == _DIGIT or not groups:
        return False
    return grouped == separator or (grouped == 0 and digits <= 3)


@kernel_inline
def _plain(
    codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], plain: npt.NDArray[np.uint16], i: int
) -> np.uint32:
    """Return what is written for codes[i]."""
    code = codes[i]
    if code >= np.uint32(PLANE):
        return np.uint32(code)
    if _is_merged(codes, i):
        return np.uint32(_AT_LEAST if code == np.uint32(_GREATER) else _AT_MOST)
    if code == np.uint32(_RING_ABOVE) and _kind_at(codes, kinds, i - 1) == _SPACE:
        return np.uint32(_DEGREE)
    return np.uint32(plain[code])


@kernel_inline
def _is_merged(codes: npt.NDArray[np.uint32], i: int) -> bool:
    """Whether codes[i] and an equals sign after it are at most or at least."""
    ordered = codes[i] == np.uint32(_LESS) or codes[i] == np.uint32(_GREATER)
    return ordered and i + 1 < len(codes) and codes[i + 1] == np.uint32(_EQUAL)


@kernel_inline
def _is_latin(code: np.uint32) -> bool:
    return bool(np.uint32(_A) <= code <= np.uint32(_Z))


@kernel_inline
def _is_before_sharp(codes: npt.NDArray[np.uint32], i: int, before: int) -> bool:
    """Whether a digit or a Latin letter is directly before codes[i], as in C#."""
    return before == _DIGIT or (before == _LETTER and _is_latin(codes[i - 1]))


@kernel_inline
def _leads_point(before: int) -> bool:
    """Whether a point after a character of this kind can be that of a decimal fraction, not a full stop."""
    return before not in (_LETTER, _HAN, _MARK, _UNIT, _POINT, _CLOSING)


@kernel_inline
def _compares(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, after_number: bool) -> bool:
    """Whether the comparison or arrow codes[i] is beside a number, and not the end of at most or at least."""
    if codes[i] == np.uint32(_EQUAL) and i and _is_merged(codes, i - 1):
        return False
    return after_number or _is_before_number(codes, kinds, i)


@kernel_inline
def _is_before_digit(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int) -> bool:
    """Whether a digit follows codes[i], dashes and spaces aside."""
    for j in range(i + 1, i + 1 + _REACH):
        kind = _kind_at(codes, kinds, j)
        if kind not in (_SPACE, _DASH, _LONG_DASH):
            return kind == _DIGIT
    return False


@kernel_inline
def _is_before_number(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int) -> bool:
    """Whether a number follows codes[i], with what may be before it."""
    for j in range(i + 1, i + 1 + _REACH):
        kind = _kind_at(codes, kinds, j)
        if kind not in (_SPACE, _SIGN, _CURRENCY, _DASH, _POINT, _COMPARE, _ARROW):
            return kind == _DIGIT
    return False


@kernel_inline
def _is_minus(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, before: int, after: int) -> bool:
    """Whether the dash codes[i] is the sign of a number directly after it, not a hyphen."""
    if before in (_LETTER, _MARK, _DIGIT, _UNIT, _DASH, _LONG_DASH, _CLOSING):
        return False
    following = _kind_at(codes, kinds, i + 2)
    if after == _CURRENCY and following == _SPACE:
        following = _kind_at(codes, kinds, i + 3)
    return after == _DIGIT or (after in (_POINT, _CURRENCY) and following == _DIGIT)


@kernel_inline
def _is_grade(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, before: int, after: int) -> bool:
    """Whether the dash codes[i] follows a single Latin letter directly and ends its word, as in A-."""
    if before != _LETTER or not _is_latin(codes[i - 1]) or after in (_LETTER, _HAN, _MARK, _DIGIT, _DASH, _LONG_DASH):
        return False
    return _kind_at(codes, kinds, i - 2) not in (_LETTER, _MARK, _DIGIT, _APOSTROPHE)


@kernel_inline
def _is_of_unit(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, before: int, after: int) -> bool:
    """Whether codes[i] is the slash of a unit after a number: 5 m/s."""
    if codes[i] != np.uint32(_SLASH) or before not in (_LETTER, _HAN) or after not in (_LETTER, _HAN):
        return False
    j = i - 1
    while j >= i - _UNIT_LETTERS and _kind_at(codes, kinds, j) in (_LETTER, _HAN):
        j -= 1
    if _kind_at(codes, kinds, j) == _SPACE:
        j -= 1
    return _kind_at(codes, kinds, j) == _DIGIT


@kernel_inline
def _is_power(codes: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], i: int, after: int) -> bool:
    """Whether an exponent follows codes[i]; not that of a square or cubic metre, which is also written m2."""
    following = _kind_at(codes, kinds, i + 2)
    if after == _DIGIT and following != _DIGIT and i and codes[i - 1] == np.uint32(_M):
        return bool(codes[i + 1] != np.uint32(_TWO) and codes[i + 1] != np.uint32(_THREE))
    return after in (_LETTER, _HAN, _DIGIT) or (after in (_DASH, _SIGN) and following == _DIGIT)


@cache
def _tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16]]:
    """Return the kind of each code point of the first plane, and the one that is written: uint8, uint16[65536]."""
    kinds = np.fromiter((_kind(code) for code in range(PLANE)), dtype=np.uint8, count=PLANE)
    for kind, characters in _KINDS_OF.items():
        kinds[[ord(character) for character in characters]] = kind
    plain = np.arange(PLANE).astype(np.uint16)
    for same in _SAME:
        plain[[ord(character) for character in same]] = ord(same[0])
    return kinds, plain


def _kind(code: int) -> int:
    """Return the kind of a code point by its general category."""
    character = chr(code)
    if character.isalnum():
        han = any(code in block for block in _HAN_AND_KANA)
        return _DIGIT if character in "0123456789" else _HAN if han else _LETTER
    if character.isspace():
        return _SPACE
    if any(code in block for block in _ARROWS):
        return _ARROW
    by_category = {"Mn": _MARK, "Mc": _MARK, "Sc": _CURRENCY, "Sm": _SIGN, "Pe": _CLOSING}
    return _SIGN if code in _BRAILLE else by_category.get(unicodedata.category(character), _NOTHING)
