"""Tests for the exact form: what tells two texts apart, and what does not."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from dedup_service._native import PageText, exact_form
from tests.core.text.exact_oracle import exact_form_by_definition


def hashes(title: str, body: str) -> tuple[int | None, int | None]:
    """The hashes of the body, and of title and body."""
    return PageText(title, body).exact_hashes


def form(text: str) -> str:
    """The exact form of a raw text."""
    return exact_form(PageText(text, "").exact[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Numbers: sign, decimal point, where one number ends.
        ("−12", "+12"), ("气温-5度", "气温5度"), ("-$5", "$5"), ("1.5", "15"), (".5", "5"), ("1,5", "15"),
        ("10 12", "1012"),
        ("3:2", "32"), ("10-12", "1012"), ("10-12", "10, 12"), ("3/2", "3:2"), ("±5", "5"), ("5×3", "5÷3"),
        ("5*3", "53"),
        ("1:1,500", "11500"), ("2,000 300 W", "2,000,300 W"), ("0,500", "0500"), ("1.500", "1500"),
        ("12,34", "1234"),
        # Comparisons and arrows beside a number.
        ("≥5", "≤5"), (">5", "<5"), ("p < 5", "p = 5"), ("↑5%", "↓5%"), ("5 → 8", "5 ← 8"), ("≈5", "5"),
        # Units and currencies.
        ("1.5%", "15%"), ("5%", "5‰"), ("5%", "5"), ("20°C", "20C"), ("20 ˚C", "20C"), ("$500", "€500"),
        ("5′", "5″"),
        ("5 m/s", "5 ms"), ("৳5", "₹5"),
        # Exponents and fractions, which NFKC takes for digits.
        ("x²", "x2"), ("10²", "102"), ("10⁻³", "10³"), ("2ⁿ", "2n"), ("10^3", "103"), ("3½", "31/2"),
        ("½", "12"), ("10₂", "102"), ("5①", "51"), ("①②", "12"), ("⒈5亿", "1.5亿"), ("7㍘", "70点"), ("3㋀", "31月"),
        ("3\u200b½", "31/2"), ("3\u00ad²", "32"),
        # Signs that belong to a name, a grade, a table.
        ("C++", "C#"), ("C#", "C"), ("F#", "F"), ("#1", "1"), ("№1", "#1"), ("A-", "A+"), ("A-", "A"),
        ("B♭", "B"),
        ("光纤 ✓", "光纤 ✗"), ("★★★☆☆", "★★★★★"), ("♂", "♀"), ("⠃⠗", "⠃⠇"),
        # Vowels and tones: Hindi, Bengali, Tamil, Thai, Lao, Khmer, Burmese, Tibetan, Vietnamese, Hebrew, Arabic.
        ("लड़के", "लड़की"), ("ज़रा", "जरा"), ("কাল", "কল"), ("கால்", "கல்"), ("ไข้", "ไข่"), ("ປ່າ", "ປາ"),
        ("កី", "កា"), ("ကို", "ကိ"),
        ("བོད", "བད"), ("má", "mà"), ("סֵפֶר", "סָפַר"), ("كَتَبَ", "كُتِبَ"), ("كتّب", "كتب"),
        ("за́мок", "замо́к"),
    ],
)  # fmt: skip
def test_what_carries_meaning_tells_texts_apart(one: str, other: str) -> None:
    """Two texts that differ in a sign, a unit, a vowel are two texts, and so if they say more around it."""
    for frame in ("{}", "截至昨日，{}，均已公布", "It was {} at noon.", "x{}"[1:] + "\n"):
        first, second = (form(frame.format(text)) for text in (one, other))
        assert first != second


@pytest.mark.parametrize(
    "same",
    [
        ("1,500", "1500", "1 500", "1’500", "1\u202f500", "１，５００", "1, 500"),
        ("1,234,567", "1 234 567", "1234567"),
        ("10-12", "10–12", "10 — 12", "10~12", "10～12", "10−12", "10－12"), ("-5", "−5", "–5", "－5"),
        ("5%", "５％", "5 %", "٥٪"), ("20℃", "20°C", "20 ° c", "20˚C"), ("$5", "＄5", "$ 5"),
        ("3:2", "3：2", "3 : 2"),
        ("≥5", ">=5", "≧ 5"), ("10³", "10^3"), ("½", "1/2"), ("3½", "3 1/2"), ("1.5", "１．５", "١٫٥"),
        # A square metre is typed without its exponent, and formulas without their indices.
        ("5 m²", "5㎡", "5 m2", "5m^2"), ("CO₂", "CO2"), ("H₂O", "H2O"),
        # A hyphen in a word or a code, a dash between words, a range of two percentages.
        ("covid-19", "COVID19", "covid–19"), ("co-op", "coop", "co\u00adop", "co-\nop"),
        ("5%-8%", "5% - 8%", "5%~8%"),
        ("“甲”乙", "「甲」乙", '"甲"乙', "甲乙", "《甲》乙"),
        ("甲……乙", "甲——乙", "甲 — 乙", "甲…乙", "甲, 乙", "甲\n乙"),
        ("it's", "it’s", "it´s", "its", "itʼs"), ("# Title", "Title", "**Title**"),
        ("● a", "• a", "- a", "— a", "a"),
        # Platforms drop or replace emoji; joiners and directions are invisible.
        ("好👍", "好", "好👎"), ("ab", "a\u200bb", "a\u200db", "a\ufeffb"), ("&ldquo;甲&rdquo;", "“甲”"),
        ("a&nbsp;b", "a b"),
        # Habits of typing: hamza, stretching; forms of Han that are traditional or not.
        ("أحمد", "احمد", "أحمـد"), ("着", "著"), ("覆盖", "复盖"), ("国际", "國際"),
    ],
)  # fmt: skip
def test_typography_counts_as_nothing(same: tuple[str, ...]) -> None:
    """Texts that differ in typography or a habit of typing have one exact form."""
    assert len({form(text) for text in same}) == 1


def test_signs_that_are_neither_number_nor_name_are_left_out() -> None:
    """Brackets around words, bullets, quoting and emoticons leave nothing."""
    assert form("> a < b = c\n-> d ^_^ * e / f : g") == "abcdefg"


def test_the_form_is_that_of_numbers_with_their_signs() -> None:
    """A text is its letters and digits, and the signs between, with one space where two numbers meet."""
    assert (
        form("C++ rose by +1,500.5 (−12 %) in 2019, 2020; A- for “B-52”!") == "c++roseby+1500.5-12%in2019 2020a-forb52"
    )


PIECES = st.sampled_from(
    [
        *"aam  012350\n-−–—~.,'’:/*<=>≥→▲#^★☆′)」%°$€+×中あ气한ิ😀𠮷✓❌著覆|٫٪اo\u0301\u030a\u0332\u02bc\u064b",
        "000",
        "100",
        "1,",
    ]
)


@given(st.lists(PIECES, max_size=24))
def test_the_crate_follows_the_definition(pieces: list[str]) -> None:
    """One pass and the rules, asked one character at a time, write the same."""
    folded = re.sub(r"\s+", lambda run: run[0][0], "".join(pieces))
    assert exact_form(folded) == exact_form_by_definition(folded)


def test_every_character_of_the_first_plane_follows_the_definition() -> None:
    """The tables class all characters as the definition does; of Han and Hangul, a part is asked."""
    for code in (*range(0x3500), *range(0x3500, 0xD800, 16), *range(0xE000, 0x10000)):
        if unicodedata.category(chr(code)) == "Cn":
            continue  # it may be a letter of a newer Unicode
        for folded in (f"a{chr(code)}b", f"5{chr(code)}5", f"a {chr(code)}5"):
            assert exact_form(folded) == exact_form_by_definition(folded)


def test_nothing_but_punctuation_has_no_hash() -> None:
    """A body without letters, digits and signs is no text: neither hash exists."""
    assert hashes("title", "— … 👍 !") == (None, None)


def test_the_hash_of_a_text_is_that_of_title_and_body() -> None:
    """Another title is another text; without titles, equal bodies are equal; neither runs into the other."""
    body, other = "no description available.", "no description available!"
    of_titles = [hashes(title, body) for title in ("a lamp", "a chair", "")]
    assert len({text for _, text in of_titles}) == 3
    assert len({body for body, _ in of_titles}) == 1
    assert hashes("", body) == hashes("", other) == of_titles[2]
    assert hashes("ab", "c")[1] != hashes("a", "bc")[1]


@given(st.lists(PIECES, max_size=5).map("".join))
def test_the_hash_of_a_body_is_that_of_its_exact_form(body: str) -> None:
    """By xxh3 of its code points."""
    written = exact_form(PageText("", body).exact[1])
    assert hashes("", body)[0] == (xxh3_64_intdigest(written.encode("utf-32-le")) if written else None)
