"""Word boundaries, against those of the `regex` library."""

import re
from collections.abc import Iterator
from itertools import pairwise, product

import regex
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import cut_at_boundaries

MAX_FLAG_LETTERS = 64
BOUNDARY = regex.compile(r"(?w)\b")
FLAGS = re.compile(f"([\U0001f1e6-\U0001f1ff]{{{MAX_FLAG_LETTERS},}})")
UNSPACED_RUN = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hiragana}\p{Katakana}\p{Han}]+")

# Each kind of character, many of them twice: rules treat two of a kind in their own way.
SPECIAL = (
    "\r\n\u2028\x0b  \u3000\"'\u2019\u2018\uff07;,.:\u00b7_\u203f"  # ends of lines, spaces, quotes, middles, connectors
    "aebE\u00c9\u0130\u2139\u24c2\U0001f170\u05d0\u05d119\u0661\u0e50"  # vowels, letters, pictographs, Hebrew, digits
    "\u0301\ufe0f\u0e35\u00ad\u200d\u200d"  # marks, invisible characters, joiners
    "\u30a2\u30fc\u3042\u0e01\u1000\u4e2d\U00020000"  # scripts without spaces
    "\U0001f1e9\U0001f1ea\U0001f600\U0001f469\U0001f3fd-"  # flags, emoji, others
)
RUSSIAN, KOREAN, ARABIC, HINDI = "объявл\u0301", "한국어단ᄀ", "المدرسة\u064b", "हिन्दी\u093f\u094d१"
TEXT = st.text(st.sampled_from(SPECIAL), max_size=24) | st.text(st.characters(codec="utf-8"), max_size=24)


def pieces(text: str) -> Iterator[str]:
    """Yield the text between boundaries, and long runs of letters of flags."""
    for number, part in enumerate(FLAGS.split(text)):
        if number % 2:
            yield part
        else:
            yield from filter(None, BOUNDARY.split(part))


def pairs(run: str) -> list[str]:
    """Return a run of characters in overlapping pairs."""
    return [run] if 0 < len(run) < 3 else [a + b for a, b in pairwise(run)]


def expected(text: str) -> list[str]:
    """Return the words of a text and the pieces between them, by the `regex` library."""
    words: list[str] = []
    run = ""
    for piece in pieces(text):
        if UNSPACED_RUN.fullmatch(piece):
            run += piece
            continue
        words += [*pairs(run), piece]
        run = ""
    return words + pairs(run)


def cut(text: str) -> list[str]:
    """Return the same by the crate."""
    return cut_at_boundaries(text)


@given(TEXT)
def test_boundaries_are_those_of_the_library(text: str) -> None:
    """In any text, above all of characters that rules are about."""
    assert cut(text) == expected(text)


def test_every_kind_meets_every_other() -> None:
    """All pairs of special characters, and all triples between line ends and among letters."""
    for number in (1, 2):
        for characters in product(dict.fromkeys(SPECIAL), repeat=number):
            assert cut("".join(characters)) == expected("".join(characters))
    triples = map("".join, product(dict.fromkeys(SPECIAL), repeat=3))
    for end in "\n", "a":
        text = end.join(triples)
        assert cut(text) == expected(text)


def test_every_code_point_has_the_kind_that_the_library_knows() -> None:
    """Alone on a line, after an apostrophe, among letters, numbers and kana, behind a joiner and half a flag."""
    for start in range(0, 0x110000, 1 << 14):
        text = "".join(
            f"\n{each}\n'{each}\na{each}a\u05d0{each}\u05d0 1{each}1\u200d{each}\U0001f1e9{each}\u30a2{each}{each}"
            for each in map(chr, range(start, start + (1 << 14)))
            if each == chr(start)
            or ((start < 0x20000 or "\U000e0000" <= each < "\U000e0200") and not "\ud800" <= each <= "\udfff")
        )
        assert cut(text) == expected(text)


@given(st.lists(st.sampled_from(["\U0001f1e9" * n for n in (1, 2, 3, 63, 64, 65)]) | TEXT, max_size=6))
def test_long_runs_of_flags_are_one_piece(parts: list[str]) -> None:
    """64 letters of flags or more; what is before and behind is cut alone."""
    assert cut("".join(parts)) == expected("".join(parts))


def test_hostile_runs_take_time_in_proportion() -> None:
    """100,000 marks, joiners, flags or quotes are cut at once: neighbours are not searched for again and again."""
    for run in ("\u0301", "\u200d", "\U0001f1e9", "'\u0301", "1\u0301.", "\U0001f1e9\u0301", "\u30a2\u0301"):
        text = "a" + run * 100_000 + "1"
        assert "".join(cut(text)) == text or "\u30a2" in run
