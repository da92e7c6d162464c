"""One form for texts that a reader would call the same.

`fold` applies Unicode NFKC, case folding, and OpenCC's conversion from traditional to simplified Chinese
(t2s). It reduces each run of white space to one character but keeps line breaks, since a line ends a
sentence. It removes invisible characters, replaces the decimal digits of all scripts by ASCII digits, and
removes what Arabic typesetters and hurried writers vary: stretching, vowel marks, the forms of alef, yeh and
teh marbuta. `letters` returns what the `body` channel sees of a folded text: its letters and digits, as code
points.

How: nearly every character of real text can be folded alone, by a table. A text with a character that may
combine with its neighbour (marks, Hangul jamo), or whose folded form is not one character, is folded by
`fold_slowly`, the definition. Both give the same string; the tests compare them.
Source: Unicode Standard Annex 15 (NFKC); Unicode 3.13 (default case folding), 5.21 (default ignorable code
points); the Arabic forms are those of Lucene's ArabicNormalizer.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt
import opencc
import xxhash

from dedup_service.core.kernels import kernel

__all__ = ["body_hash", "fold", "fold_slowly", "is_letter_above", "letters", "without_headline"]

PLANE = 0x10000
SLOW = 0xFFFF  # a noncharacter: marks code points that the table cannot fold
_JAMO = range(0x1100, 0x1200)
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


def fold(text: str) -> str:
    """Return `text` folded: without differences of width, case, Chinese script and white space."""
    code_points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(code_points) == 0:
        return ""
    folded = folded_by(_fold_table(), code_points)
    if len(folded) < len(code_points):
        return fold_slowly(text)
    return _finish(folded.tobytes().decode("utf-32-le"))


def fold_slowly(text: str) -> str:
    """Return `text` folded: the definition of `fold`, for any text. Lone surrogates become U+FFFD."""
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _finish(_normal(clean))


def letters(folded: str) -> npt.NDArray[np.uint32]:
    """Return the letters and digits of a folded text as code points: uint32[n].

    In the planes above the first one, everything counts except emoji and tags.
    """
    code_points = np.frombuffer(folded.encode("utf-32-le"), dtype=np.uint32)
    return letters_among(code_points, _letter_table())


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


def body_hash(folded: str) -> int | None:
    """Return the unsigned 64-bit hash (xxh3) of a folded body without white space; None if that is empty."""
    bare = "".join(folded.split())
    return xxhash.xxh3_64_intdigest(bare.encode()) if bare else None


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


def _normal(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_variants())
    return unicodedata.normalize("NFKC", plain.casefold())


def _finish(text: str) -> str:
    simplified: str = _simplifier().convert(text)
    lines = (" ".join(line.split()) for line in simplified.split("\n"))
    return "\n".join(line for line in lines if line)


@kernel
def folded_by(table: npt.NDArray[np.uint16], code_points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the code points uint32[n] folded by the table, up to the first one that it cannot fold."""
    folded = np.empty(len(code_points), dtype=np.uint32)
    for i in range(len(code_points)):
        code = code_points[i]
        folded[i] = table[code] if code < np.uint32(PLANE) else np.uint16(SLOW)
        if folded[i] == np.uint32(SLOW):
            return folded[:i]
    return folded


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
    return table


def _folded_alone(character: str) -> int:
    folded = _normal(character)
    alone = len(folded) == 1 and ord(folded) < PLANE and ord(folded) not in _JAMO
    return ord(folded) if alone and unicodedata.category(folded)[0] != "M" else SLOW


@cache
def _letter_table() -> npt.NDArray[np.bool_]:
    """Return bool[65536]: which code points are letters or digits."""
    return np.fromiter((chr(code).isalnum() for code in range(PLANE)), dtype=np.bool_, count=PLANE)
