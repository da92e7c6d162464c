"""Laws of equal texts, on generated ones: no sign is lost, no typography is seen."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.exact_form import exact_hashes
from dedup_service.core.text.normalise import code_points, fold_exactly
from dedup_service.core.text.page_text import NOTHING, PageTexts

PAIRS = 2000
HAN = "市交通局昨日公布跨江大桥主体工程提前三周完将于下月初车全长设双向六道两侧留有自行"
WORDS = [
    "the",
    "harbour",
    "authority",
    "opened",
    "a",
    "new",
    "grain",
    "terminal",
    "on",
    "monday",
    "after",
    "four",
    "years",
    "of",
    "work",
    "farmers",
    "say",
    "rates",
]
# Consonants and dependent vowels or tones of scripts, by their places in Unicode.
SCRIPTS = {
    "Devanagari": ("कखगघचछजझटठडढणतथदधनपफबभम", "ािीुूृेैोौं"),
    "Bengali": ("কখগঘচছজঝটঠডঢণতথদধন", "ািীুূৃেৈোৌ"),
    "Gujarati": ("કખગઘચછજઝટઠડઢણતથદધન", "ાિીુૂૃેૈોૌ"),
    "Tamil": ("கஙசஞடணதநபமயரலவ", "ாிீுூெேைொோௌ"),
    "Telugu": ("కఖగఘచఛజఝటఠడఢణత", "ాిీుూృెేైొోౌ"),
    "Thai": ("กขคงจฉชซญดตถทนบปผพฟมยรลวสหอ", "ิีึืุู่้๊๋"),
    "Lao": ("ກຂຄງຈຊຍດຕຖທນບປຜພຟມຢຣລວສຫອຮ", "ິີຶືຸູ່້໊໋"),
    "Khmer": ("កខគឃងចឆជឈញដឋឌឍណតថទធន", "ាិីឹឺុូួេែៃោៅ"),
    "Myanmar": ("ကခဂဃငစဆဇဈညတထဒဓနပဖဗဘမ", "ါာိီုူေဲ"),
    "Tibetan": ("ཀཁགངཅཆཇཉཏཐདནཔཕབམ", "ིེོུ"),
    "Hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", "ְִֵֶַָֹֻ"),
    "Arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهو", "ًٌٍَُِّْ"),
}


def hashed(text: str) -> int | None:
    """The hash of the exact form of a raw text."""
    return exact_hashes(PageTexts.joined([code_points(fold_exactly(text)[1]), NOTHING]))[0][0]


def prose(rng: random.Random) -> str:
    """A text of 20 to 190 letters, Chinese or English, with a place for a value."""
    if rng.random() < 0.5:
        letters = [rng.choice(HAN) for _ in range(rng.randint(20, 190))]
        letters[rng.randrange(len(letters))] += rng.choice(["，{}，", "{}", " {} "])
        return "".join(letters) + "。"
    words = [rng.choice(WORDS) for _ in range(rng.randint(5, 30))]
    words.insert(rng.randrange(len(words)), "{}")
    return " ".join(words) + "."


def units(rng: random.Random) -> tuple[str, str]:
    """One amount in two units."""
    number, (one, other) = (
        rng.randint(1, 9999),
        rng.sample(["%", "‰", "°", "°C", "°F", "m", "m²", "m³", "m/s", "ms", "′", "″", "×"], 2),
    )
    return f"{number}{one}", f"{number}{other}"


def signs(rng: random.Random) -> tuple[str, str]:
    """One number with two signs before it, or two numbers with two signs between them."""
    a, b = rng.randint(1, 99), rng.randint(1, 99)
    if rng.random() < 0.5:
        one, other = rng.sample(["", "+", "-", "±", "≥", "≤", "≈", ">", "<", "#", "0."], 2)
        return f"{one}{a}", f"{other}{a}"
    one, other = rng.sample(["", ".", ":", "-", "+", "×", "/", ", ", "^", "*", "=", "→"], 2)
    return f"{a}{one}{b}", f"{a}{other}{b}"


def currencies(rng: random.Random) -> tuple[str, str]:
    """One amount in two currencies, before or after it, or in none."""
    number, (one, other) = (
        rng.randint(1, 99999),
        rng.sample(["$", "€", "£", "¥", "₹", "₩", "₽", "฿", "₫", "₺", "৳", "៛", ""], 2),
    )
    return (f"{one}{number}", f"{other}{number}") if rng.random() < 0.5 else (f"{number} {one}", f"{number} {other}")


def framed(value: Callable[[random.Random], tuple[str, str]]) -> Callable[[random.Random], tuple[str, str]]:
    """Pairs of texts that differ in a value."""

    def pair(rng: random.Random) -> tuple[str, str]:
        text, (one, other) = prose(rng), value(rng)
        return text.format(one), text.format(other)

    return pair


def vowels(rng: random.Random) -> tuple[str, str]:
    """Two texts of one script that differ in a vowel or tone, or in whether it is there."""
    consonants, marks = SCRIPTS[rng.choice(sorted(SCRIPTS))]
    syllables = [rng.choice(consonants) + rng.choice(marks) for _ in range(rng.randint(10, 90))]
    place = rng.randrange(len(syllables))
    others = [mark for mark in (*marks, "") if mark != syllables[place][1:]]
    changed = [*syllables[:place], syllables[place][0] + rng.choice(others), *syllables[place + 1 :]]
    return spaced(syllables), spaced(changed)


def spaced(syllables: list[str]) -> str:
    """A text with a space after every fifth syllable."""
    return " ".join("".join(syllables[start : start + 5]) for start in range(0, len(syllables), 5))


@pytest.mark.parametrize(
    "pair", [framed(units), framed(signs), framed(currencies), vowels], ids=["units", "signs", "currencies", "vowels"]
)
def test_no_pair_that_differs_in_a_sign_has_one_hash(pair: Callable[[random.Random], tuple[str, str]]) -> None:
    """Of 2,000 generated pairs of short texts that differ in exactly that, none is called the same text."""
    rng = random.Random(14)
    pairs = [pair(rng) for _ in range(PAIRS)]
    assert [both for both in pairs if hashed(both[0]) == hashed(both[1])] == []


def cases(word: str) -> tuple[str, ...]:
    """Ways to write an English word."""
    wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)
    broken = word[:2] + "\u00ad" + word[2:]
    hyphenated = word[:3] + "-" + word[3:]
    return word, word.upper(), word.capitalize(), wide, broken, hyphenated, word[:1] + "\u200b" + word[1:]


# Each word and number in several ways that are the same.
ENGLISH = [*map(cases, filter(lambda word: len(word) > 4, WORDS)), ("can't", "can’t", "CAN´T", "cant")]
CHINESE = [("国际", "國際"), ("着眼", "著眼"), ("体检复查", "體檢複查"), ("背负", "揹負"), ("ガス", "ｶﾞｽ")]
OTHERS = [
    ("ไข้", "ไข\u200b้"), ("क़िला", "\u0958िला"), ("אחמד", "\u200fאחמד"), ("أحمد", "احمد", "أحمـد"),
    ("한국", "\u1112\u1161\u11ab국"),
]  # fmt: skip
PLAIN_NUMBERS = [
    ("1500", "1,500", "1 500", "１５００", "1’500"), ("1.5", "１.５", "１．５"), ("5%", "5 %", "５％"),
    ("12", "１２", "१२"),
]  # fmt: skip
SIGNED_NUMBERS = [
    ("-5", "−5", "–5", "－5"), ("+5%", "＋5％"), ("$20", "＄20", "$ 20"), ("≥3", ">=3", "≧ 3"), ("-0.5", "−0.5"),
]  # fmt: skip
RANGES = [
    ("10-12", "10–12", "10—12", "10 ~ 12", "10～12"), ("3:2", "3：2", "3∶2"),
    ("2024-01-02", "2024–01–02", "2024－01－02"),
]  # fmt: skip
QUOTES = [
    ("", ""), ("“", "”"), ("「", "」"), ('"', '"'), ("‘", "’"), ("《", "》"), ("(", ")"), ("【", "】"), ("**", "**"),
    ("&ldquo;", "&rdquo;"),
]  # fmt: skip
SEPARATORS = [
    " ", ", ", "，", "。", ". ", "\n",
    "\u3000", "\u00a0", " — ", "——", "…", "; ", "！", "? ", " | ", " • ", " 😀 ", "、",
]  # fmt: skip
BEFORE_SIGNS = [" ", ", ", "，", "\n", "\u3000", "、", ": ", " • ", "。"]


@st.composite
def renderings(draw: st.DrawFn) -> tuple[str, str]:
    """Two ways to write the same text: no two numbers meet, so punctuation does not say where one ends."""
    texts = ["", ""]
    for _ in range(draw(st.integers(1, 12))):
        word = draw(st.sampled_from(ENGLISH + CHINESE + OTHERS))
        numbers = draw(st.sampled_from([PLAIN_NUMBERS, SIGNED_NUMBERS, RANGES]))
        number = draw(st.sampled_from(numbers))
        for side in range(2):
            opening, closing = draw(st.sampled_from(QUOTES))
            texts[side] += f"{opening}{draw(st.sampled_from(word))}{closing}"
            texts[side] += draw(st.sampled_from(BEFORE_SIGNS if numbers is SIGNED_NUMBERS else SEPARATORS))
            texts[side] += draw(st.sampled_from(number)) + draw(st.sampled_from(SEPARATORS))
    return texts[0], texts[1]


@given(renderings())
def test_typography_never_changes_the_hash(texts: tuple[str, str]) -> None:
    """Width, quotes, dashes, spaces, case, script and punctuation around words leave the hash alone."""
    assert hashed(texts[0]) == hashed(texts[1])


def every_word() -> Iterator[tuple[str, ...]]:
    """The ways to write each word and number of the law."""
    yield from (*ENGLISH, *CHINESE, *OTHERS, *PLAIN_NUMBERS, *SIGNED_NUMBERS, *RANGES)


def test_the_law_is_of_different_words() -> None:
    """The words and numbers of the law differ from one another, so equal hashes are no accident of it."""
    hashes = {hashed(ways[0]) for ways in every_word()}
    assert len(hashes) == sum(1 for _ in every_word())
