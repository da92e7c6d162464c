"""One form for texts that a reader would call the same.

`fold`: Unicode NFKC, case folding, traditional to simplified Chinese (OpenCC t2s), runs of white space to
one. White space keeps its line breaks, since a line ends a sentence. Invisible characters go, decimal digits of all
scripts become ASCII, and Arabic loses what typesetters and hurried writers vary: stretching, vowel marks, the forms
of alef, yeh and teh marbuta.
`letters`: what the `body` channel sees of a folded text: its letters and digits only, as code points.

How: nearly every character of real text is folded on its own, so a table does it; a text with a character
that may combine with its neighbour (marks, Hangul jamo) or that has no one-character form takes the slow,
defining way through `unicodedata`. Both give the same string, which the tests hold against each other.
Source: Unicode Standard Annex 15 (NFKC); Unicode 3.13 (default case folding), 5.21 (default ignorable code points);
the Arabic forms are those of Lucene's ArabicNormalizer.
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
SLOW = 0xFFFF  # a noncharacter: marks what the table cannot fold
_JAMO = range(0x1100, 0x1200)
# Han, Hangul syllables, private use: two thirds of the plane, which folding leaves as it is (the tests ask each).
_UNCHANGED = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0xF900))
# Characters that nobody sees: soft hyphens, zero-width spaces and joiners, directions, variation selectors.
_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
_ARABIC_MARKS = range(0x064B, 0x0656)


def fold(text: str) -> str:
    """Return `text` folded; equal for texts that differ in width, case, script of Chinese, or white space."""
    code_points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(code_points) == 0:
        return ""
    folded = folded_by(_fold_table(), code_points)
    if len(folded) < len(code_points):
        return fold_slowly(text)
    return _finish(folded.tobytes().decode("utf-32-le"))


def fold_slowly(text: str) -> str:
    """The definition of `fold`, for any text; lone surrogates become U+FFFD."""
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _finish(_normal(clean))


def letters(folded: str) -> npt.NDArray[np.uint32]:
    """Return the letters and digits of a folded text as code points uint32[n].

    Of the planes above the first one all but emoji and tags count.
    """
    code_points = np.frombuffer(folded.encode("utf-32-le"), dtype=np.uint32)
    return letters_among(code_points, _letter_table())


@kernel
def letters_among(code_points: npt.NDArray[np.uint32], table: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return the code points that are letters or digits: uint32[n]; table bool[PLANE]: of the first plane."""
    found = np.empty(len(code_points), dtype=np.uint32)
    count = 0
    for code in code_points:
        if table[code] if code < np.uint32(PLANE) else is_letter_above(code):
            found[count] = code
            count += 1
    return found[:count]


@kernel
def is_letter_above(code: np.uint32) -> bool:
    """Whether a code point above the first plane counts as a letter: it is no emoji, symbol or tag."""
    return not (np.uint32(0x1F000) <= code < np.uint32(0x20000) or code >= np.uint32(0xE0000))


def body_hash(folded: str) -> int | None:
    """Return the unsigned 64-bit hash (xxh3) of a folded body without its white space; None where nothing is left."""
    bare = "".join(folded.split())
    return xxhash.xxh3_64_intdigest(bare.encode()) if bare else None


def without_headline(folded: str, title: str) -> str:
    """Return a folded body without its first line where that repeats the folded title, or the title's beginning.

    Extraction often leaves the headline at the top of the text, where an edited one would move the body. A body of
    one line stays.
    """
    first, _, rest = folded.partition("\n")
    if not rest or len(first) > 2 * len(title):
        return folded
    headline = _bare(first)
    return rest if headline and _bare(title).startswith(headline) else folded


def _bare(line: str) -> str:
    return "".join(filter(str.isalnum, line))


def _normal(text: str) -> str:
    seen = unicodedata.normalize("NFKC", text).translate(_variants())
    return unicodedata.normalize("NFKC", seen.casefold())


def _finish(text: str) -> str:
    simplified: str = _simplifier().convert(text)
    lines = (" ".join(line.split()) for line in simplified.split("\n"))
    return "\n".join(line for line in lines if line)


@kernel
def folded_by(table: npt.NDArray[np.uint16], code_points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return what the table makes of the code points uint32[n], only as far as it can fold them."""
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
    """Return what each character that is only a variant stands for; None: nothing."""
    variants: dict[int, str | None] = {ord(written): plain for written, plain in _ARABIC.items()}
    variants.update(dict.fromkeys(_ARABIC_MARKS))
    for first, last in _IGNORABLE:
        variants.update(dict.fromkeys(range(first, last + 1)))
    digits = (code for code in range(0x80, 2 * PLANE) if unicodedata.decimal(chr(code), None) is not None)
    variants.update((code, str(unicodedata.decimal(chr(code)))) for code in digits)
    return variants


@cache
def _fold_table() -> npt.NDArray[np.uint16]:
    """Return uint16[65536]: the folded form of each code point, SLOW where it has none of one character."""
    table = np.arange(PLANE).astype(np.uint16)
    table[0xD800:0xE000] = SLOW  # surrogates
    asked = np.ones(PLANE, dtype=np.bool_)
    for block in (range(0xD800, 0xE000), *_UNCHANGED):
        asked[block.start : block.stop] = False
    for code in np.flatnonzero(asked).tolist():
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
