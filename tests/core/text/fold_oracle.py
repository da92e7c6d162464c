"""The definition of folding in plain Python, for characters that the interpreter's Unicode knows."""

import html
import re
import unicodedata
from functools import cache
from itertools import pairwise

import opencc

MAX_MARKS = 30
EXPONENTS, INDICES = "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ", "₀₁₂₃₄₅₆₇₈₉¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉"
REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE | re.ASCII)
INVISIBLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
ARABIC_MARKS, ARABIC_VOWELS = range(0x064B, 0x0656), range(0x064B, 0x0653)


def folded(text: str, *, exactly: bool = False) -> str:
    """Return a text folded; exactly: without loss."""
    text = REFERENCE.sub(lambda found: html.unescape(found[0]), text)
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if exactly:
        gone = (code for code, plain in plain_forms().items() if not plain and code not in ARABIC_VOWELS)
        text = text.translate(dict.fromkeys(gone))
        text = re.sub(f"(?<![⁺⁻])[⁺⁻]*[{EXPONENTS}][⁺⁻{EXPONENTS}]*", r"^\g<0>", text)
        text = "".join(" " * joins(*two) + two[1] for two in pairwise(f" {text}"))
    variants = plain_forms() | ({code: chr(code) for code in ARABIC_VOWELS} if exactly else {})
    text = composed(composed(text).translate(variants).casefold())
    text = re.sub(r"\s+", lambda run: "\n" if "\n" in run[0] else " ", text.strip())
    return simplifier().convert(text)  # type: ignore[no-any-return]


def joins(one: str, other: str) -> bool:
    """Whether folding would make one number of two neighbours that are two."""
    if {*EXPONENTS, *"⁺⁻"} & {one, other}:
        return False
    kinds = ["digit" if unicodedata.decimal(of, None) is not None else INDICES.find(of) >= 0 for of in (one, other)]
    if kinds[0] == kinds[1] and kinds[0]:
        return False
    ends, begins = (unicodedata.normalize("NFKC", of) for of in (one, other))
    is_before = ends[-1:].isdecimal() or (ends[0].isdecimal() and ends[-1] in ".,")
    return is_before and begins[0].isdecimal()


def composed(text: str) -> str:
    """Return a text in NFKC, with at most MAX_MARKS marks in a row."""
    kept, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) else 0
        if marks <= MAX_MARKS:
            kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept))


@cache
def plain_forms() -> dict[int, str | None]:
    """Return the plain form of each variant by code point; None for a character to remove."""
    forms: dict[int, str | None] = {ord(written): plain for written, plain in ARABIC.items()}
    forms |= dict.fromkeys(ARABIC_MARKS)
    for first, last in INVISIBLE:
        forms |= dict.fromkeys(range(first, last + 1))
    digits = (code for code in range(0x80, 0x20000) if unicodedata.decimal(chr(code), None) is not None)
    return forms | {code: str(unicodedata.decimal(chr(code))) for code in digits}


@cache
def simplifier() -> opencc.OpenCC:
    """OpenCC, from traditional to simplified."""
    return opencc.OpenCC("t2s")
