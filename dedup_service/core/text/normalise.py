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
combine with its neighbour (marks, Hangul jamo), that is above the first plane, or that says less when folded,
is folded by `fold_slowly`, the definition. Both give the same string; the tests compare them. OpenCC is asked
only if a text has a Chinese character that is not in GB 2312, the list for simplified Chinese, or that OpenCC
changes: it takes as long as all the rest.
Source: Unicode Standard Annex 15 (NFKC); Unicode 3.13 (default case folding), 5.21 (default ignorable code
points); the Arabic forms are those of Lucene's ArabicNormalizer.
"""

import html
import re
import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt
import opencc

from dedup_service.core.kernels import kernel

__all__ = [
    "PLANE",
    "fold",
    "fold_exactly",
    "fold_slowly",
    "is_letter_above",
    "letter_table",
    "letters",
    "without_headline",
]

PLANE = 0x10000
MAX_MARKS = 30
"""Combining marks in a row; UAX 15 finds no text in use with more."""
SLOW = 0xFFFF  # a noncharacter: marks code points that the table cannot fold
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
_EXPONENT = re.compile(f"(?<![⁺⁻])[⁺⁻]*[{_EXPONENTS}][⁺⁻{_EXPONENTS}]*")
_MIXED_NUMBER = re.compile(rf"(?<=\d)(?=[{_INDICES}{_FRACTIONS}])|(?<=[{_INDICES}{_FRACTIONS}])(?=\d)")
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
    apart = _MIXED_NUMBER.sub(" ", _EXPONENT.sub(r"^\g<0>", clean))
    exact = _normal(apart, _variants() | {code: chr(code) for code in _ARABIC_VOWELS})
    return folded, _finish(_code_points(exact))


def fold_slowly(text: str) -> str:
    """Return `text` folded: the definition of `fold`, for any text. Lone surrogates become U+FFFD."""
    return _finish(_code_points(_normal(_clean(text), _variants())))


def letters(folded: str) -> npt.NDArray[np.uint32]:
    """Return the letters, digits and written marks of a folded text as code points: uint32[n].

    In the planes above the first one, everything counts except emoji and tags.
    """
    code_points = np.frombuffer(folded.encode("utf-32-le"), dtype=np.uint32)
    return letters_among(code_points, letter_table())


@kernel
def letters_among(code_points: npt.NDArray[np.uint32], table: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return the code points that are letters or digits: uint32[n]. table: bool[PLANE], the first plane."""
    kept = np.empty(len(code_points), dtype=np.uint32)
    count = 0
    for code in code_points:
        if table[code] if code < np.uint32(PLANE) else is_letter_above(code):
            kept[count] = code
            count += 1
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
    code_points = np.frombuffer(_without_references(text).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    folded, ended = folded_by(code_points, _fold_table(), *_expansions())
    return _finish(folded) if ended else None


def _clean(text: str) -> str:
    """Return `text` without character references, U+FFFD in place of lone surrogates."""
    return _without_references(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_references(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _normal(text: str, variants: dict[int, str | None]) -> str:
    plain = _nfkc(text).translate(variants)
    return _nfkc(plain.casefold())


def _nfkc(text: str) -> str:
    """Return `text` in NFKC, without the marks after the thirtieth in a row.

    Python sorts a run of marks in quadratic time: 80,000 take half a minute. The Stream-Safe Text Format puts a
    combining grapheme joiner after each 30; here that is no cure, as folding removes the joiners before it
    normalises again. No language has so many marks on a letter, so nothing is lost that could be read.
    Source: Unicode Standard Annex 15, section 13.
    """
    return unicodedata.normalize("NFKC", _marks_beyond().sub(r"\1", text))


@cache
def _marks_beyond() -> re.Pattern[str]:
    """Return the expression for a run of more than MAX_MARKS non-starters; its group has the first of them.

    A character whose decomposition begins with a non-starter is one, too (U+0F73).
    """
    characters = map(chr, range(2 * PLANE))
    decomposed = ((each, unicodedata.normalize("NFKD", each)) for each in characters if not each.isascii())
    marks = "".join(each for each, parts in decomposed if unicodedata.combining(parts[0]))
    return re.compile(f"([{marks}]{{{MAX_MARKS}}})[{marks}]+")


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def _finish(folded: npt.NDArray[np.uint32]) -> str:
    """Return a text uint32[n], folded but for white space and Chinese script."""
    written, simplified = spaced_once(folded, _space_table(), _simplified_table())
    text: str = written.tobytes().decode("utf-32-le")
    return text if simplified else _simplifier().convert(text)


@kernel
def folded_by(
    code_points: npt.NDArray[np.uint32],
    table: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.uint16],
    expansions: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.uint32], bool]:
    """Return code points uint32[n], folded by the tables, and whether they could fold all of them.

    table: as `_fold_table`. starts, expansions: as `_expansions`.
    """
    room = len(code_points)
    for code in code_points:
        if code < np.uint32(PLANE) and table[code] == np.uint16(SLOW):
            room += _LONGEST_EXPANSION
    folded = np.empty(room, dtype=np.uint32)
    count = 0
    for code in code_points:
        if code >= np.uint32(PLANE):
            return folded[:count], False
        if table[code] != np.uint16(SLOW):
            folded[count] = table[code]
            count += 1
            continue
        start = int(starts[code])
        if start == 0:
            return folded[:count], False
        for at in range(start + 1, start + 1 + int(expansions[start])):
            folded[count] = expansions[at]
            count += 1
    return folded[:count], True


@kernel
def spaced_once(
    code_points: npt.NDArray[np.uint32], spaces: npt.NDArray[np.bool_], simplified: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint32], bool]:
    """Return code points uint32[n] with each run of white space as one character, and whether all are simplified.

    A run with a line feed becomes a line feed, another a space; runs at the ends are dropped. spaces,
    simplified: bool[PLANE].
    """
    written = np.empty(len(code_points), dtype=np.uint32)
    count = 0
    pending = np.uint32(0)
    all_simplified = True
    for code in code_points:
        inside = code < np.uint32(PLANE)
        if inside and spaces[code]:
            pending = np.uint32(10) if code == np.uint32(10) or pending == np.uint32(10) else np.uint32(32)
            continue
        if pending:
            if count:
                written[count] = pending
                count += 1
            pending = np.uint32(0)
        written[count] = code
        count += 1
        all_simplified = all_simplified and inside and simplified[code]
    return written[:count], all_simplified


@cache
def _space_table() -> npt.NDArray[np.bool_]:
    """Return bool[65536]: which code points are white space."""
    return np.fromiter((chr(code).isspace() for code in range(PLANE)), dtype=np.bool_, count=PLANE)


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

    The list of a character begins at its start with its length, and is uint32; a start of 0 is no list.
    """
    starts, lists = np.zeros(PLANE, dtype=np.uint16), [0]
    for code in np.flatnonzero(_fold_table() == SLOW).tolist():
        character = chr(code)
        if 0xD800 <= code < 0xE000 or unicodedata.category(character)[0] == "M" or code in _JAMO:
            continue
        folded = _normal(character, _variants())
        alone = all(
            ord(part) < PLANE and ord(part) not in _JAMO and unicodedata.category(part)[0] != "M" for part in folded
        )
        if alone and len(folded) <= _LONGEST_EXPANSION and not _LESS_WHEN_FOLDED.search(character):
            starts[code] = len(lists)
            lists += [len(folded), *map(ord, folded)]
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
