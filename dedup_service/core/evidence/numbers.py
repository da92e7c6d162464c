"""The numbers of a text, in one pass over its characters: sign and value, and the unit of each.

A number is one of these:

- Digits, with a decimal point (1.5) and separators of thousands (1,250,000), which are left out. A run with
  several points (2008.8.15) is several numbers; a comma that separates no thousands ends one.
- Two or more Chinese numerals: 二〇〇八 digit by digit, 一百二十 by its units. A single one counts after 第,
  before a calendar word (年月日号届期次), as in 第三届 or 五月, and beside 点 with another numeral.

A multiplier after digits (千万亿, million) multiplies: 1.5万 and 一万五千 have one value, 15000. Values are
compared as decimal digits, so 08月 is 8月, and 1.50 is not 1.5. The sign belongs to the value.

The unit is the currency before the number ($, US$, eur) or 百分之; else what follows, after one space at most:
a symbol (%, °C, a currency), a calendar word, the word, or two letters of a script without spaces. A date as
2008-08-15 has the units of 2008年8月15日.
"""

import unicodedata

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel, kernel_inline
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.normalise import is_letter_above, letter_table

_PLANE = 0x10000
# What a character is to a number. Codes up to 9 are digits of ASCII; those from 16 are Chinese numerals.
_NOTHING, _LETTER, _LETTER_UNSPACED, _CURRENCY, _SYMBOL, _CALENDAR, _DIGIT = 0, 1, 2, 3, 4, 5, 6
_NUMERAL, _UNIT = 16, 32  # plus the digit; plus the power of ten
_NUMERALS = {numeral: value for value, numeral in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_POWERS = {"十": 1, "百": 2, "千": 3, "万": 4, "亿": 8}
_UNSPACED_FROM = 0x0E00


def _characters() -> npt.NDArray[np.uint8]:
    """Return uint8[65536]: what each character of the first plane is to a number."""
    kinds = np.zeros(_PLANE, dtype=np.uint8)
    letters = letter_table()
    kinds[:_UNSPACED_FROM][letters[:_UNSPACED_FROM]] = _LETTER
    kinds[_UNSPACED_FROM:][letters[_UNSPACED_FROM:]] = _LETTER_UNSPACED
    for code in range(_PLANE):
        if unicodedata.category(chr(code)) == "Sc":
            kinds[code] = _CURRENCY
    for text, kind in (("%‰‱°", _SYMBOL), ("年月日号届期次", _CALENDAR), ("0123456789", _DIGIT)):
        for character in text:
            kinds[ord(character)] = kind
    for numeral, value in _NUMERALS.items():
        kinds[ord(numeral)] = _NUMERAL + value
    for numeral, power in _POWERS.items():
        kinds[ord(numeral)] = _UNIT + power
    return kinds


CHARACTERS = _characters()
"""What each character is to a number, for `numbers_of`."""

_CURRENCY_CODES = (
    *("usd", "eur", "gbp", "jpy", "cny", "rmb", "hkd", "twd", "krw", "inr", "aud", "cad", "chf", "sgd", "rub"),
    *("brl", "mxn", "sek", "nok", "dkk", "nzd", "thb", "zar", "try", "pln", "idr"),
)
_ISO_CODES = np.array([int.from_bytes(code.encode(), "big") for code in _CURRENCY_CODES], dtype=np.int64)
"""Codes that stand before an amount as a currency symbol does, each as three bytes of ASCII."""

_SCALES = np.array(
    [[*map(ord, word), *[0] * (9 - len(word))] for word in ("thousand", "million", "billion", "trillion")],
    dtype=np.uint32,
)
"""Words that multiply the number before them by the powers of a thousand, ended by 0."""

_SPACE, _PLUS, _COMMA, _MINUS, _POINT, _SLASH, _PLUS_MINUS = 32, 43, 44, 45, 46, 47, 0xB1
_EN_DASH, _MINUS_SIGN = 0x2013, 0x2212
_DEGREE = ord("°")
_DATE_UNITS = (ord("日"), ord("月"), ord("年"))
_ORDINAL, _DOT = ord("第"), ord("点")
_HUNDRED, _PART, _OF, _PERCENT = ord("百"), ord("分"), ord("之"), ord("%")
_GROUP, _DAY_DIGITS = 3, 2
_POWERS_MYRIAD = 4
_LONGEST_SHIFT = 32
_TENS = np.array([10**power for power in range(9)], dtype=np.uint64)
_S8, _S21, _S48, _S56, _LOW8 = np.uint64(8), np.uint64(21), np.uint64(48), np.uint64(56), np.uint64(255)


@kernel
def numbers_of(
    code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the numbers of a folded text in their order: hashes of values and of units, uint64[n] each.

    code_points: uint32[k]. characters: CHARACTERS. The sign belongs to the value; a unit is 0 without one.
    """
    count = len(code_points)
    values, units = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
    digits = np.empty(count + _LONGEST_SHIFT, dtype=np.uint8)
    found = i = 0
    date_parts = 0  # how many parts of a date as 2008-08-15 are still to come
    while i < count:
        kind = _kind(code_points, characters, i)
        start = i
        if kind == _DIGIT:
            if _is_date(code_points, characters, i):
                date_parts = len(_DATE_UNITS)
            i, value = _decimal(code_points, characters, i, digits)
        elif kind >= _NUMERAL:
            i, value = _numerals(code_points, characters, i, digits)
            if i - start == 1 and not _single_counts(code_points, characters, start):
                continue
        else:
            i += 1
            continue
        sign, unit = _before(code_points, characters, start)
        if date_parts:
            date_parts -= 1
            unit = np.uint64(_DATE_UNITS[date_parts])
        elif unit == 0:
            unit = _after(code_points, characters, i)
        values[found] = mix64_in_kernel(value + np.uint64(sign) * GAMMA)
        units[found] = mix64_in_kernel(unit) if unit else np.uint64(0)
        found += 1
    return values[:found], units[:found]


@kernel_inline
def _kind(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> int:
    """Return what the character at `i` is to a number; _NOTHING outside the text."""
    if i < 0 or i >= len(code_points):
        return _NOTHING
    code = code_points[i]
    if code < np.uint32(_PLANE):
        return int(characters[code])
    return _LETTER_UNSPACED if is_letter_above(code) else _NOTHING


@kernel_inline
def _code(code_points: npt.NDArray[np.uint32], i: int) -> int:
    """Return the character at `i`; 0 outside the text."""
    return int(code_points[i]) if 0 <= i < len(code_points) else 0


@kernel
def _is_date(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> bool:
    """Whether a date begins at `i`: a year of four digits, month and day, with the same mark between."""
    if _kind(code_points, characters, i - 1) == _DIGIT or _code(code_points, i) not in (ord("1"), ord("2")):
        return False
    mark = _code(code_points, i + 4)
    if mark not in (_MINUS, _POINT, _SLASH):
        return False
    for k in range(1, 4):
        if _kind(code_points, characters, i + k) != _DIGIT:
            return False
    at = i + 5
    for part in range(2):
        length = 0
        while length <= _DAY_DIGITS and _kind(code_points, characters, at + length) == _DIGIT:
            length += 1
        if not 1 <= length <= _DAY_DIGITS:
            return False
        at += length
        if part == 0:
            if _code(code_points, at) != mark:
                return False
            at += 1
    return True


@kernel
def _decimal(
    code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], start: int, digits: npt.NDArray[np.uint8]
) -> tuple[int, np.uint64]:
    """Return where the number of digits that begins at `start` ends, and the hash of its value.

    Multipliers after it belong to it. digits: uint8 for the digits, longer than the text.
    """
    # After "2008." of 2008.8.15, the rest is not the decimal number 8.15.
    point_allowed = not (
        _code(code_points, start - 1) == _POINT and _kind(code_points, characters, start - 2) == _DIGIT
    )
    length, whole, i, group, point = 0, -1, start, start, -1
    while True:
        if _kind(code_points, characters, i) == _DIGIT:
            digits[length] = np.uint8(_code(code_points, i) - ord("0"))
            length += 1
            i += 1
            continue
        code = _code(code_points, i)
        if code == _COMMA and point < 0 and 1 <= i - group <= _GROUP and _is_group(code_points, characters, i + 1):
            i += 1
            group = i
        elif code == _POINT and _kind(code_points, characters, i + 1) == _DIGIT:
            if not point_allowed:
                break
            if point >= 0:  # a second point: several numbers, of which this is the first
                i, length = point, whole
                whole = -1
                break
            point, whole = i, length
            i += 1
        else:
            break
    whole = length if whole < 0 else whole
    power, after = _multiplier(code_points, characters, i + 1 if _code(code_points, i) == _SPACE else i)
    if power:
        i = after
        while length < whole + min(power, _LONGEST_SHIFT):
            digits[length] = 0
            length += 1
        whole = min(whole + power, length)
        while length > whole and digits[length - 1] == 0:
            length -= 1
    return i, _value(digits, length, whole, power > 0 or whole <= _DAY_DIGITS)


@kernel
def _multiplier(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> tuple[int, int]:
    """Return the power of ten of the multipliers that begin at `i`, 0 without one, and where they end.

    These are 千, 万 and 亿, 百 before one of them (百 alone often begins a word), and the English words.
    """
    power = 0
    while True:
        kind = _kind(code_points, characters, i)
        if kind < _UNIT + 2 or (kind == _UNIT + 2 and _kind(code_points, characters, i + 1) < _UNIT + _GROUP):
            break
        power += kind - _UNIT
        i += 1
    if power:
        return power, i
    for word in range(len(_SCALES)):
        scale = _SCALES[word]
        length = 0
        while scale[length] and np.uint32(_code(code_points, i + length)) == scale[length]:
            length += 1
        if scale[length] == 0 and _kind(code_points, characters, i + length) != _LETTER:
            return (word + 1) * _GROUP, i + length
    return 0, i


@kernel
def _is_group(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> bool:
    """Whether exactly three digits begin at `i`."""
    for k in range(_GROUP):
        if _kind(code_points, characters, i + k) != _DIGIT:
            return False
    return _kind(code_points, characters, i + _GROUP) != _DIGIT


@kernel
def _numerals(
    code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], start: int, digits: npt.NDArray[np.uint8]
) -> tuple[int, np.uint64]:
    """Return where the Chinese numerals that begin at `start` end, and the hash of their value.

    A value beyond 64 bits wraps around.
    """
    i, length = start, 0
    by_units = False
    total, section, pending, last = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(1)
    is_pending = directly_after = False
    while True:
        kind = _kind(code_points, characters, i)
        if kind < _NUMERAL:
            break
        if kind < _UNIT:
            digit = np.uint64(kind - _NUMERAL)
            digits[length] = np.uint8(digit)
            length += 1
            directly_after = not is_pending
            pending = pending * np.uint64(10) + digit
            is_pending = True
        else:
            by_units = True
            last = _TENS[kind - _UNIT]
            if kind < _UNIT + _POWERS_MYRIAD:
                section += max(pending, np.uint64(1)) * last
            elif kind == _UNIT + _POWERS_MYRIAD:
                total += max(section + pending, np.uint64(1)) * last
                section = np.uint64(0)
            else:
                total = max(total + section + pending, np.uint64(1)) * last
                section = np.uint64(0)
            pending = np.uint64(0)
            is_pending = False
        i += 1
    if not by_units:
        return i, _value(digits, length, length, length <= _DAY_DIGITS)
    if is_pending and directly_after and last > np.uint64(10) and pending < np.uint64(10):
        pending *= last // np.uint64(10)  # 一万二 is 12,000
    value = total + section + pending
    reach, length = np.uint64(1), 0
    while value // reach >= np.uint64(10):
        reach *= np.uint64(10)
    while reach:
        digits[length] = np.uint8(value // reach % np.uint64(10))
        length += 1
        reach //= np.uint64(10)
    return i, _value(digits, length, length, bare=True)


@kernel
def _value(digits: npt.NDArray[np.uint8], length: int, whole: int, bare: bool) -> np.uint64:
    """Return the hash of a number of `length` digits, of which `whole` are before the point.

    bare: whether zeros before the number are left out.
    """
    first = 0
    while bare and first < whole - 1 and digits[first] == 0:
        first += 1
    value = np.uint64(0)
    for k in range(first, length):
        if k == whole:
            value = mix64_in_kernel(value + GAMMA * np.uint64(_POINT))
        value = mix64_in_kernel(value + GAMMA * np.uint64(digits[k] + 1))
    return value


@kernel
def _single_counts(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> bool:
    """Whether the single Chinese numeral at `i` is a number: after 第, before a calendar word, beside 点."""
    if _code(code_points, i - 1) == _ORDINAL or _kind(code_points, characters, i + 1) == _CALENDAR:
        return True
    if _code(code_points, i - 1) == _DOT and _kind(code_points, characters, i - 2) >= _NUMERAL:
        return True
    return _code(code_points, i + 1) == _DOT and _kind(code_points, characters, i + 2) >= _NUMERAL


@kernel
def _before(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> tuple[int, np.uint64]:
    """Return the sign of the number that begins at `i`, and the currency or per cent (百分之) before it.

    The sign is 1 for minus, 2 for plus, 3 for both, 0 without one. No currency is 0.
    """
    sign = _sign(code_points, characters, i - 1)
    at = i - 2 if sign else i - 1
    if _kind(code_points, characters, at) == _CURRENCY:
        currency = np.uint64(_code(code_points, at))
        at -= 1
        sign = max(sign, _sign(code_points, characters, at))
        while _kind(code_points, characters, at) == _LETTER:  # US$, A$
            currency = mix64_in_kernel(currency + GAMMA * np.uint64(_code(code_points, at)))
            at -= 1
        return sign, currency
    if _code(code_points, at) == _OF and _code(code_points, at - 1) == _PART and _code(code_points, at - 2) == _HUNDRED:
        return sign, np.uint64(_PERCENT)
    if _code(code_points, at) == _SPACE:
        at -= 1
    code = 0
    for k in range(_GROUP):
        if _kind(code_points, characters, at - k) != _LETTER:
            return sign, np.uint64(0)
        code |= _code(code_points, at - k) << 8 * k
    if _kind(code_points, characters, at - _GROUP) != _LETTER:
        for name in _ISO_CODES:
            if name == code:
                return sign, np.uint64(code)
    return sign, np.uint64(0)


@kernel
def _sign(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> int:
    """Return the sign at `i`; a hyphen or dash after a digit or a letter of a word is none."""
    code = _code(code_points, i)
    if code == _PLUS:
        return 2
    if code == _PLUS_MINUS:
        return 3
    is_minus = code in (_MINUS, _MINUS_SIGN, _EN_DASH)
    return int(is_minus and _kind(code_points, characters, i - 1) not in (_DIGIT, _LETTER))


@kernel
def _after(code_points: npt.NDArray[np.uint32], characters: npt.NDArray[np.uint8], i: int) -> np.uint64:
    """Return the unit after a number that ends before `i`; 0 if there is none."""
    if _code(code_points, i) == _SPACE:
        i += 1
    kind, unit = _kind(code_points, characters, i), np.uint64(_code(code_points, i))
    after = _kind(code_points, characters, i + 1)
    if kind in (_SYMBOL, _CURRENCY, _CALENDAR):
        if unit == np.uint64(_DEGREE) and after == _LETTER:
            return unit << _S21 | np.uint64(_code(code_points, i + 1))
        return unit
    if kind == _LETTER:
        while _kind(code_points, characters, i + 1) == _LETTER:
            i += 1
            unit = mix64_in_kernel(unit + GAMMA * np.uint64(_code(code_points, i)))
        return unit
    if kind == _LETTER_UNSPACED or kind >= _NUMERAL:
        if after in (_LETTER_UNSPACED, _CALENDAR) or after >= _NUMERAL:
            unit = unit << _S21 | np.uint64(_code(code_points, i + 1))
        return unit
    return np.uint64(0)


@kernel
def figures_digest(values: npt.NDArray[np.uint64], units: npt.NDArray[np.uint64]) -> np.uint64:
    """Return the digest of the figures, values and units uint64[n]: the same in any order; 0 without any."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += mix64_in_kernel(values[i] + mix64_in_kernel(units[i] + GAMMA))
    return total


@kernel
def sampled_numbers(
    values: npt.NDArray[np.uint64], units: npt.NDArray[np.uint64], limit: int
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    """Return the `limit` smallest numbers: hashes of values uint16[n] and of units uint8[n].

    The n-th occurrence of a number has another value than the first, so multisets are compared. Numbers are
    ascending by value, then unit.
    """
    order = np.argsort(values ^ units)
    pairs = np.empty(len(values), dtype=np.uint64)
    occurrence = np.uint64(0)
    for k in range(len(order)):
        value, unit = values[order[k]], units[order[k]]
        again = k > 0 and values[order[k - 1]] == value and units[order[k - 1]] == unit
        occurrence = occurrence + np.uint64(1) if again else np.uint64(0)
        pairs[k] = mix64_in_kernel(value + occurrence * GAMMA) >> _S48 << _S8 | unit >> _S56
    kept = np.sort(pairs)[:limit]
    return (kept >> _S8).astype(np.uint16), (kept & _LOW8).astype(np.uint8)
