"""One form for texts that a reader would call the same.

`fold` applies Unicode NFKC, case folding, and OpenCC's conversion from traditional to simplified Chinese
(t2s). It reduces each run of white space to one character but keeps line breaks, since a line ends a
sentence. It replaces character references of HTML, which double escaping leaves in a text (`&ldquo;`). It
removes invisible characters, replaces the decimal digits of all scripts by ASCII digits, and
removes what Arabic typesetters and hurried writers vary: stretching, vowel marks, the forms of alef, yeh and
teh marbuta.

`letters` returns what the `body` channel sees of a folded text, as code points: its letters and digits, and
the vowel signs and tones of scripts that always write them, such as Devanagari, Thai and Khmer.
`fold_exactly` also keeps what folding drops and equality needs (`core.text.exact_form`): exponents, the space
in a mixed number, Arabic vowel marks.

How: nearly every character of real text can be folded alone, by tables. A text with a character that may
combine with its neighbour (marks, Hangul jamo), that is above the first plane and no emoji, or that says less when
folded, is folded by `fold_slowly`, the definition. Both give the same string; the tests compare them. OpenCC is asked
only if a text has a Chinese character that is not in GB 2312, the list for simplified Chinese, or that OpenCC
changes: it takes as long as all the rest.
Source: Unicode Standard Annex 15 (NFKC); Unicode 3.13 (default case folding), 5.21 (default ignorable code
points); the Arabic forms are those of Lucene's ArabicNormalizer.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import opencc

from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

PLANE = 0x10000
MAX_MARKS = 30
"""Combining marks in a row; UAX 15 finds no text in use with more."""
SLOW = 0xFFFF  # a noncharacter: marks code points that the table cannot fold
_CODE, _IS_SPACE, _MAY_BE_TRADITIONAL = np.uint32(0xFFFF), np.uint32(1 << 16), np.uint32(1 << 17)
FOLDED, SIMPLIFIED = 1, 2
_MARK, _VARIANT = 1, 2
_JAMO = range(0x1100, 0x1200)
_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00))
_LONGEST_EXPANSION = 8
# Han, Hangul syllables, private use: two thirds of the plane, unchanged by folding (tested for each).
_UNCHANGED = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0xF900))
# Invisible characters: soft hyphens, zero-width spaces and joiners, directions, variation selectors.
_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
_ARABIC_MARKS = range(0x064B, 0x0656)
_ARABIC_VOWELS = range(0x064B, 0x0653)
"""Of the marks those that equality needs: short vowels, doubling, no vowel; not hamza and madda, a habit."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE | re.ASCII)

# Vowel signs, tones and other marks of scripts in which no writer leaves them out: Thaana and N'Ko, from
# Devanagari to Myanmar, from Tagalog to Tai Tham, from Balinese to Lepcha, Vedic signs, and later blocks.
_WRITTEN_MARKS = (
    range(0x0780, 0x0800), range(0x0900, 0x10A0), range(0x1700, 0x1AB0), range(0x1B00, 0x1C50),
    range(0x1CD0, 0x1D00), range(0xA800, 0xAAF8), range(0xABC0, 0xAC00),
)  # fmt: skip

_EXPONENTS, _INDICES, _FRACTIONS = "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ", "₀₁₂₃₄₅₆₇₈₉", "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉"
# Each is a class of characters alone, which is found in a tenth of the time of an expression that looks around.
_SIGNED_EXPONENTS = re.compile(f"[⁺⁻{_EXPONENTS}]+")
_PARTS_OF_NUMBERS = re.compile(f"[{_INDICES}{_FRACTIONS}]+")
_LESS_WHEN_FOLDED = re.compile(f"[{_EXPONENTS}{_INDICES}{_FRACTIONS}{''.join(map(chr, _ARABIC_VOWELS))}]")


def fold(text: str) -> str:
    """Return `text` folded: without differences of width, case, Chinese script and white space."""
    folded = _fold_by_table(text)
    return fold_slowly(text) if folded is None else folded


def fold_exactly(text: str) -> tuple[str, str]:
    """Return `text` folded, and folded without loss for `core.text.exact_form`; mostly this is one string.

    >>> fold_exactly("10² 3½")
    ('102 31⁄2', '10^2 3 1⁄2')
    """
    folded = _fold_by_table(text)
    if folded is not None:
        return folded, folded
    folded = fold_slowly(text)
    clean = _clean(text)
    if _LESS_WHEN_FOLDED.search(clean) is None:
        return folded, folded
    apart = _PARTS_OF_NUMBERS.sub(_apart_from_digits, _SIGNED_EXPONENTS.sub(_as_exponent, clean))
    return folded, _finish(code_points(_normal(apart, _exact_variants())))


def _as_exponent(run: re.Match[str]) -> str:
    """Return a run of exponents and signs as an exponent; signs alone are none."""
    return run[0] if set(run[0]) <= {"⁺", "⁻"} else f"^{run[0]}"


def _apart_from_digits(run: re.Match[str]) -> str:
    """Return indices or fractions with a space between them and the digits before and behind them."""
    before, behind = run.string[max(0, run.start() - 1) : run.start()], run.string[run.end() : run.end() + 1]
    return f"{' ' * before.isdecimal()}{run[0]}{' ' * behind.isdecimal()}"


def fold_slowly(text: str) -> str:
    """Return `text` folded: the definition of `fold`, for any text. Lone surrogates become U+FFFD."""
    return _finish(code_points(_normal(_clean(text), _variants())))


def letters(folded: str) -> npt.NDArray[np.uint32]:
    """Return the letters, digits and written marks of a folded text as code points: uint32[n].

    In the planes above the first one, everything counts except emoji and tags.
    """
    return letters_among(code_points(folded), letter_table())


@kernel
def letters_among(code_points: npt.NDArray[np.uint32], table: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return the code points that are letters or digits: uint32[n]. table: bool[PLANE], the first plane."""
    kept = np.empty(len(code_points), dtype=np.uint32)
    count = 0
    for code in code_points:
        kept[np.uint64(count)] = code
        count += table[code] if code < np.uint32(PLANE) else is_letter_above(code)
    return kept[:count]


@kernel
def is_letter_above(code: np.uint32) -> bool:
    """Whether a code point above the first plane counts as a letter: not an emoji, symbol or tag."""
    return not (np.uint32(0x1F000) <= code < np.uint32(0x20000) or code >= np.uint32(0xE0000))


def without_headline(folded: str, title: str) -> str:
    """Return a folded body without its first line, if that repeats the folded title or the beginning of it.

    Extraction often leaves the headline at the top of the text, where an edited headline would move the
    `body` channel. A body of one line is not changed.
    """
    first, _, rest = folded.partition("\n")
    if not rest or len(first) > 2 * len(title):
        return folded
    headline = _bare(first)
    return rest if headline and _bare(title).startswith(headline) else folded


def _bare(line: str) -> str:
    return "".join(filter(str.isalnum, line))


def _fold_by_table(text: str) -> str | None:
    """Return `text` folded, or None if the table cannot fold it."""
    folded, _, kinds = folded_parts([text])
    return _simplified(folded, bool(kinds[0] & SIMPLIFIED)) if kinds[0] & FOLDED else None


def folded_parts(
    texts: Sequence[str],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return n texts folded by the tables, but for Chinese script: code points uint32[m], all in one array.

    With them where each text ends, int64[n], and bits of what is known of it, uint8[n]: FOLDED: the tables could fold
    it; otherwise its place is empty. SIMPLIFIED: nothing in it may be traditional Chinese, so it is `fold`ed.
    """
    parts = [_without_references(text) for text in texts]
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    return folded_by(code_points("".join(parts)), ends, _folded_table(), *_expansions())


def _clean(text: str) -> str:
    """Return `text` without character references, U+FFFD in place of lone surrogates."""
    return _without_references(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_references(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _normal(text: str, variants: dict[int, str | None]) -> str:
    plain = _nfkc(text)
    if len(plain) <= MAX_MARKS or has_run(code_points(plain), _kinds(), _VARIANT, 1):
        plain = plain.translate(variants)
    return _nfkc(plain.casefold())


def _nfkc(text: str) -> str:
    """Return `text` in NFKC, without the marks after the thirtieth in a row.

    Python sorts a run of marks in quadratic time: 80,000 take half a minute. The Stream-Safe Text Format puts a
    combining grapheme joiner after each 30; here that is no cure, as folding removes the joiners before it
    normalises again. No language has so many marks on a letter, so nothing is lost that could be read.
    Source: Unicode Standard Annex 15, section 13.
    """
    if len(text) > MAX_MARKS and has_run(code_points(text), _kinds(), _MARK, MAX_MARKS + 1):
        text = _marks_beyond().sub(r"\1", text)
    return unicodedata.normalize("NFKC", text)


@kernel
def has_run(code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], kind: int, length: int) -> bool:
    """Whether so many code points in a row are of a kind: uint32[n]. kinds: as `_kinds`; what is above may be of any.

    Python's expressions take half a microsecond for each character to look for them.
    """
    run = 0
    for code in code_points:
        of_kind = code >= np.uint32(len(kinds)) or (kinds[code] & np.uint8(kind)) != 0
        run = run + 1 if of_kind else 0
        if run == length:
            return True
    return False


@cache
def _kinds() -> npt.NDArray[np.uint8]:
    """Return uint8[131072]: _MARK for a non-starter, _VARIANT for what `_variants` has, else 0.

    A character whose decomposition begins with a non-starter is one, too (U+0F73).
    """
    kinds = np.zeros(2 * PLANE, np.uint8)
    for code in range(0x80, 2 * PLANE):
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0]):
            kinds[code] = _MARK
    kinds[[code for code in _variants() if code < len(kinds)]] |= _VARIANT
    return kinds


@cache
def _marks_beyond() -> re.Pattern[str]:
    """Return the expression for a run of more than MAX_MARKS non-starters; its group has the first of them."""
    marks = "".join(map(chr, np.flatnonzero(_kinds() & _MARK).tolist()))
    return re.compile(f"([{marks}]{{{MAX_MARKS}}})[{marks}]+")


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text: uint32[n], read-only."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _finish(folded: npt.NDArray[np.uint32]) -> str:
    """Return a text uint32[n], folded but for white space and Chinese script."""
    return _simplified(*spaced_once(folded, _marks()))


def _simplified(folded: npt.NDArray[np.uint32], is_simplified: bool) -> str:
    """Return code points as a text in simplified Chinese, which they are already or not."""
    text = str(folded.data, "utf-32-le")
    return text if is_simplified else simplified(text)


def simplified(text: str) -> str:
    """Return a folded text in simplified Chinese. A line break separates texts: no word has one."""
    converted: str = _simplifier().convert(text)
    return converted


@long_kernel
def folded_by(
    code_points: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    table: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint16],
    expansions: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return what `folded_parts` returns of texts uint32[k] that end at `ends`, int64[n].

    table: as `_folded_table`. starts, expansions: as `_expansions`.
    """
    room = len(code_points)
    for code in code_points:
        if code < np.uint32(PLANE) and table[code] == np.uint32(SLOW):
            room += _LONGEST_EXPANSION
    written = np.empty(room, dtype=np.uint32)
    written_ends, kinds = np.empty(len(ends), np.int64), np.zeros(len(ends), np.uint8)
    first = start = 0
    for part in range(len(ends)):
        count, kinds[part] = folded_part(code_points[start : ends[part]], table, starts, expansions, written[first:])
        start, first = ends[part], first + count
        written_ends[part] = first
    return written[:first], written_ends, kinds


@kernel_inline
def folded_part(
    code_points: npt.NDArray[np.uint32],
    table: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint16],
    expansions: npt.NDArray[np.uint32],
    written: npt.NDArray[np.uint32],
) -> tuple[int, np.uint8]:
    """Fold one text into `written`, and return how long it is then and what is known of it."""
    count = 0
    pending = np.uint32(0)
    seen = np.uint32(0)
    for code in code_points:
        if code >= np.uint32(PLANE):
            if not is_pictograph(code):
                return 0, np.uint8(0)
            count, pending = spaced(written, count, pending, code, False)
            continue
        folded = table[code]
        if folded != np.uint32(SLOW):
            count, pending = spaced(written, count, pending, folded & _CODE, bool(folded & _IS_SPACE))
            seen |= folded
            continue
        start = int(starts[code])
        if start == 0:
            return 0, np.uint8(0)
        for at in range(start + 1, start + 1 + int(expansions[start])):
            folded = expansions[at]
            count, pending = spaced(written, count, pending, folded & _CODE, bool(folded & _IS_SPACE))
            seen |= folded
    return count, np.uint8(FOLDED if seen & _MAY_BE_TRADITIONAL else FOLDED | SIMPLIFIED)


@kernel_inline
def is_pictograph(code: np.uint32) -> bool:
    """Whether a code point above the first plane is an emoji or the like, which folding leaves as it is."""
    return bool(np.uint32(0x1F300) <= code < np.uint32(0x1FB00))


@kernel
def spaced_once(
    code_points: npt.NDArray[np.uint32], marks: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint32], bool]:
    """Return code points uint32[n] with each run of white space as one character, and whether all are simplified.

    marks: as `_marks`. Above the first plane nothing but pictographs is known to be simplified.
    """
    written = np.empty(len(code_points), dtype=np.uint32)
    count = 0
    pending = np.uint32(0)
    seen = np.uint32(0)
    for code in code_points:
        if code < np.uint32(PLANE):
            mark = marks[code]
        elif is_pictograph(code):
            mark = np.uint32(0)
        else:
            mark = _MAY_BE_TRADITIONAL
        count, pending = spaced(written, count, pending, code, bool(mark & _IS_SPACE))
        seen |= mark
    return written[:count], (seen & _MAY_BE_TRADITIONAL) == 0


@kernel_inline
def spaced(
    written: npt.NDArray[np.uint32], count: int, pending: np.uint32, code: np.uint32, is_space: bool
) -> tuple[int, np.uint32]:
    """Write a code point as the next one of a text, of which `count` are written; return their number then.

    pending: the white space before it, 0 without any, which also is returned: a run with a line feed becomes a line
    feed, another a space; runs at the ends are dropped.
    """
    if is_space:
        has_break = code == np.uint32(10) or pending == np.uint32(10)
        return count, np.uint32(10) if has_break else np.uint32(32)
    if pending and count:
        written[count] = pending
        count += 1
    written[count] = code
    return count + 1, np.uint32(0)


@cache
def _marks() -> npt.NDArray[np.uint32]:
    """Return uint32[65536]: _IS_SPACE for white space, _MAY_BE_TRADITIONAL for what OpenCC must see, else 0."""
    marks = np.zeros(PLANE, dtype=np.uint32)
    marks[[chr(code).isspace() for code in range(PLANE)]] = _IS_SPACE
    marks[~_simplified_table()] |= _MAY_BE_TRADITIONAL
    return marks


@cache
def _folded_table() -> npt.NDArray[np.uint32]:
    """Return uint32[65536]: the folded form of each code point with its `_marks`, SLOW if that is not one character."""
    table = _fold_table()
    return np.where(table == SLOW, np.uint32(SLOW), table | _marks()[table])


@cache
def _simplified_table() -> npt.NDArray[np.bool_]:
    """Return bool[65536]: which code points OpenCC need not see: all but Han that may be traditional."""
    table = np.ones(PLANE, dtype=np.bool_)
    for block in _HAN:
        han = "".join(map(chr, block))
        converted = _simplifier().convert("\n".join(han)).split("\n")
        table[block.start : block.stop] = [
            before == after and _in_gb2312(before) for before, after in zip(han, converted, strict=True)
        ]
    return table


def _in_gb2312(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _expansions() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Return what the characters become whose folded form is none or several: starts uint16[65536] and lists.

    The list of a character begins at its start with its length, and is uint32, each with its `_marks`; a start of 0 is
    no list.
    """
    starts, lists = np.zeros(PLANE, dtype=np.uint16), [0]
    for code in np.flatnonzero(_fold_table() == SLOW).tolist():
        character = chr(code)
        if 0xD800 <= code < 0xE000 or code in _JAMO:
            continue
        folded = _normal(character, _variants())
        is_dropped = not folded and not unicodedata.combining(character)  # such as a variation selector
        if unicodedata.category(character)[0] == "M" and not is_dropped:
            continue
        alone = all(
            ord(part) < PLANE and ord(part) not in _JAMO and unicodedata.category(part)[0] != "M" for part in folded
        )
        if alone and len(folded) <= _LONGEST_EXPANSION and not _LESS_WHEN_FOLDED.search(character):
            starts[code] = len(lists)
            lists += [len(folded), *(ord(part) | int(_marks()[ord(part)]) for part in folded)]
    return starts, np.array(lists, dtype=np.uint32)


@cache
def _simplifier() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


@cache
def _variants() -> dict[int, str | None]:
    """Return the plain form of each variant by code point; None for a character to remove."""
    variants: dict[int, str | None] = {ord(written): plain for written, plain in _ARABIC.items()}
    variants.update(dict.fromkeys(_ARABIC_MARKS))
    for first, last in _IGNORABLE:
        variants.update(dict.fromkeys(range(first, last + 1)))
    digits = (code for code in range(0x80, 2 * PLANE) if unicodedata.decimal(chr(code), None) is not None)
    variants.update((code, str(unicodedata.decimal(chr(code)))) for code in digits)
    return variants


@cache
def _exact_variants() -> dict[int, str | None]:
    """Return `_variants` without the Arabic marks that equality needs."""
    return _variants() | {code: chr(code) for code in _ARABIC_VOWELS}


@cache
def _fold_table() -> npt.NDArray[np.uint16]:
    """Return uint16[65536]: the folded form of each code point, SLOW if that is not one character."""
    table = np.arange(PLANE).astype(np.uint16)
    table[0xD800:0xE000] = SLOW  # surrogates
    changed = np.ones(PLANE, dtype=np.bool_)
    for block in (range(0xD800, 0xE000), *_UNCHANGED):
        changed[block.start : block.stop] = False
    for code in np.flatnonzero(changed).tolist():
        table[code] = _folded_alone(chr(code))
    table[[ord(character) for character in _EXPONENTS + _INDICES]] = SLOW
    return table


def _folded_alone(character: str) -> int:
    folded = _normal(character, _variants())
    alone = len(folded) == 1 and ord(folded) < PLANE and ord(folded) not in _JAMO
    return ord(folded) if alone and unicodedata.category(folded)[0] != "M" else SLOW


@cache
def letter_table() -> npt.NDArray[np.bool_]:
    """Return bool[65536]: which code points of the first plane count for `letters`."""
    table = np.fromiter((chr(code).isalnum() for code in range(PLANE)), dtype=np.bool_, count=PLANE)
    for block in _WRITTEN_MARKS:
        table[block.start : block.stop] |= [unicodedata.category(chr(code)) in ("Mn", "Mc") for code in block]
    return table
