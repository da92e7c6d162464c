"""Write what the crate knows of characters to the folder `tables`, from Unicode's data, Python's and OpenCC's.

    pip install regex unicodedata2 opencc && python dedup_service/native/make_tables.py

The files are part of the crate, so all builds fold alike, whatever is installed, and a start makes no tables. They are
made again for a new release of Unicode, together with the crate `unicode-normalization` of that release; folded texts
may then differ, so the space names what `VERSION` says.

`characters.bin` is a sequence of arrays, little-endian, each behind its length in bytes (uint32), as
`src/characters.rs` reads them. `simplified.txt` has the words and characters of traditional Chinese, `references.txt`
the character references of HTML, with what they become. `version.txt` names the releases that all this is from.
Sources: Unicode Standard Annex 15 (NFKC), 29 (word boundaries), 44 (properties); Unicode 3.13 (case folding), 5.21
(default ignorable code points); the Arabic forms are those of Lucene's ArabicNormalizer.
"""

import html
import re
import struct
import subprocess
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from html.entities import html5
from importlib.metadata import version
from itertools import accumulate, product
from pathlib import Path

import jieba
import opencc
import regex
import unicodedata2 as unicodedata
from regex import _regex

PLANE, CODES = 0x10000, 0x110000
SURROGATES = range(0xD800, 0xE000)
TABLES = Path(__file__).parent / "tables"


def main() -> None:
    """Write the files."""
    _require_one_unicode()
    pairs = product(range(STATES), repeat=2)
    arrays = [
        *_folding(),
        *_by_block(map(_marks, range(CODES))),
        *_by_block(map(_traits, range(CODES))),
        *_by_block(map(_exact_kind, range(CODES))),
        *_by_block(_word_kinds()),
        bytes(_verdict(state, kind) * STATES + _next(state, kind) for state, kind in pairs),
        *_mapping({ord(other): same[0] for same in SAME for other in same[1:]}),
        *_mapping({code: plain or "" for code, plain in variants().items()}),
        *_mapping({code: casefold(chr(code)) for code in range(CODES) if casefold(chr(code)) != chr(code)}),
    ]
    packed = b"".join(struct.pack("<I", len(part)) + part for part in arrays)
    (TABLES / "characters.bin").write_bytes(packed)
    forms = [f"{traditional}\t{simplified}\n" for traditional, simplified in _simplified_forms()]
    (TABLES / "simplified.txt").write_text("".join(forms), encoding="utf-8")
    numbers = {f"#{code}": html.unescape(f"&#{code};") for code in (0, 13, *range(0x80, 0xA0))}
    references = (html5 | numbers).items()
    lines = [f"{name}\t{' '.join(f'{ord(character):x}' for character in text)}\n" for name, text in references]
    (TABLES / "references.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    releases = f"Unicode {unicodedata.unidata_version}, OpenCC {version('opencc')}"
    (TABLES / "version.txt").write_text(releases, encoding="utf-8")
    print(f"{len(packed):,} bytes, {len(forms):,} Chinese forms, {releases}")


def _require_one_unicode() -> None:
    """Raise ValueError if the two libraries have different releases of Unicode."""
    assigned = {found[0] for found in regex.finditer(r"\P{gc=Cn}", _all_characters())}
    if assigned != {character for character in _all_characters() if unicodedata.category(character) != "Cn"}:
        raise ValueError("regex and unicodedata2 are of different releases of Unicode: install others")


@cache
def _all_characters() -> str:
    return "".join(chr(code) for code in range(CODES) if code not in SURROGATES)


# Folding. ------------------------------------------------------------------------------------------------------------

SLOW, IS_SPACE, MAY_BE_TRADITIONAL = 0xFFFF, 1, 2
MAX_MARKS = 30
LONGEST_EXPANSION = 8
JAMO = range(0x1100, 0x1200)
HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00))
PICTOGRAPHS = range(0x1F300, 0x1FB00)
# Invisible characters: soft hyphens, zero-width spaces and joiners, directions, variation selectors.
IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
ARABIC_MARKS = range(0x064B, 0x0656)
LESS_WHEN_FOLDED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ₀₁₂₃₄₅₆₇₈₉¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉\u064b-\u0652]")


def casefold(character: str) -> str:
    """Return a character with its full case folding, by the newer of two releases."""
    folded = character.casefold()
    return folded if folded != character else _regex.fold_case(regex.FULLCASE | regex.IGNORECASE, character)


@cache
def variants() -> Mapping[int, str | None]:
    """Return the plain form of each variant by code point; None for a character to remove."""
    plain: dict[int, str | None] = {ord(written): form for written, form in ARABIC.items()}
    plain |= dict.fromkeys(ARABIC_MARKS)
    for first, last in IGNORABLE:
        plain |= dict.fromkeys(range(first, last + 1))
    digits = ((code, unicodedata.decimal(chr(code), None)) for code in range(0x80, 2 * PLANE))
    return plain | {code: str(digit) for code, digit in digits if digit is not None}


def folded_alone(character: str) -> str:
    """Return a character folded, but for Chinese script."""
    plain = unicodedata.normalize("NFKC", character).translate(variants())
    folded: str = unicodedata.normalize("NFKC", "".join(map(casefold, plain)))
    return folded


def _folding() -> tuple[bytes, bytes]:
    """Return the folded form of each code point of the first plane, and the lists of those that are not one character.

    The form: bits 0-15: code point, or SLOW | 16-17: its marks | 18-31: of a SLOW one where its list begins, 0 if it
    cannot be folded alone. A list is the number of code points, and each with its marks.
    """
    table, lists = array("I"), array("I", [0])
    for code in range(PLANE):
        if code in SURROGATES:
            table.append(SLOW)
            continue
        character, folded = chr(code), folded_alone(chr(code))
        less = LESS_WHEN_FOLDED.search(character) is not None
        stays_alone = all(map(_is_alone, folded))
        if len(folded) == 1 and stays_alone and not less:
            table.append(ord(folded) | _marks(ord(folded)) << 16)
            continue
        table.append(SLOW)
        is_dropped = not folded and not unicodedata.combining(character)  # such as a variation selector
        is_mark = unicodedata.category(character)[0] == "M" and not is_dropped
        if code not in JAMO and not is_mark and stays_alone and len(folded) <= LONGEST_EXPANSION and not less:
            table[code] |= len(lists) << 18
            lists.extend([len(folded), *(part | _marks(part) << 16 for part in map(ord, folded))])
    assert len(lists) < 1 << 14
    return table.tobytes(), lists.tobytes()


def _is_alone(character: str) -> bool:
    """Whether a character never combines with its neighbours."""
    return ord(character) < PLANE and ord(character) not in JAMO and unicodedata.category(character)[0] != "M"


def _marks(code: int) -> int:
    """Return IS_SPACE and MAY_BE_TRADITIONAL of a folded character."""
    if code >= PLANE:
        return 0 if code in PICTOGRAPHS else MAY_BE_TRADITIONAL
    return IS_SPACE * chr(code).isspace() | MAY_BE_TRADITIONAL * (code in _maybe_traditional())


@cache
def _maybe_traditional() -> frozenset[int]:
    """Return the Chinese characters that OpenCC changes, or that GB 2312, the list for simplified Chinese, lacks."""
    codes = [code for block in HAN for code in block]
    converted = opencc.OpenCC("t2s").convert("\n".join(map(chr, codes))).split("\n")
    pairs = zip(codes, converted, strict=True)
    return frozenset(code for code, after in pairs if chr(code) != after or not chr(code).encode("gb2312", "ignore"))


WORDS_OF_TAIWAN = "軟體 軟件,資訊 信息,網路 網絡,程式 程序,影片 視頻,專案 項目,設定 設置"
"""Words of Taiwan that the mainland writes now and then, and its own ones, which are far more frequent there."""

COMMON = 5
"""Frequency of a word in jieba's dictionary from which it counts; the most frequent have 10^5 and more."""


def _simplified_forms() -> Iterator[tuple[str, str]]:
    """Yield what is replaced, words first, with what replaces it.

    That is OpenCC's conversion t2s, and the words of Taiwan and Hong Kong that its conversions to the words of the
    mainland know, where these are common. Not replaced is what the mainland writes, too, in another sense, as 程序, or
    as part of a longer word, as 尼日 of 尼日利亚: by the dictionary of jieba.
    """
    converter = opencc.OpenCC("t2s")
    replaced = {word: converter.convert(own) for word, own in (pair.split() for pair in WORDS_OF_TAIWAN.split(","))}
    for dictionary, conversion in (("TWPhrasesRev", "tw2sp"), ("HKPhrasesRev", "hk2sp")):
        with_words = opencc.OpenCC(conversion)
        for word in _words_of(dictionary):
            plain, mainland = converter.convert(word), with_words.convert(word)
            is_sure = _is_of_the_mainland(mainland) and not _is_of_the_mainland(plain)
            if len(word) > 1 and (is_sure or plain == mainland):  # the latter have a replaced one in them: 軟體動物
                replaced.setdefault(word, mainland)
    for word in _words_of("TSPhrases"):
        replaced.setdefault(word, converter.convert(word))
    yield from replaced.items()
    characters = [chr(code) for code in range(0x2E80, CODES) if code not in SURROGATES]
    converted = converter.convert("\n".join(characters)).split("\n")
    yield from (pair for pair in zip(characters, converted, strict=True) if pair[0] != pair[1])


@cache
def _mainland() -> str:
    """Return the words of jieba's dictionary, each after a line break."""
    jieba.initialize()
    return "\n".join(word for word, frequency in jieba.dt.FREQ.items() if frequency >= COMMON)


def _is_of_the_mainland(word: str) -> bool:
    return word in _mainland()


def _words_of(dictionary: str) -> Iterator[str]:
    """Yield the words of a dictionary of OpenCC."""
    package = Path(opencc.__file__).parent / "clib"
    with tempfile.NamedTemporaryFile() as words:
        files = ["-i", str(package / "share" / "opencc" / f"{dictionary}.ocd2"), "-o", words.name]
        subprocess.run([package / "bin" / "opencc_dict", *files, "-f", "ocd2", "-t", "text"], check=True)  # noqa: S603
        for line in Path(words.name).read_text(encoding="utf-8").splitlines():
            yield line.split("\t")[0]


# What a character counts for. ----------------------------------------------------------------------------------------

LETTER, ALPHANUMERIC, NON_STARTER = 1, 2, 4
LATIN, HAN_SCRIPT, KANA, OTHER_SCRIPT = 8, 16, 24, 32
# Vowel signs, tones and other marks of scripts in which no writer leaves them out: Thaana and N'Ko, from
# Devanagari to Myanmar, from Tagalog to Tai Tham, from Balinese to Lepcha, Vedic signs, and later blocks.
WRITTEN_MARKS = (
    range(0x0780, 0x0800), range(0x0900, 0x10A0), range(0x1700, 0x1AB0), range(0x1B00, 0x1C50),
    range(0x1CD0, 0x1D00), range(0xA800, 0xAAF8), range(0xABC0, 0xAC00),
)  # fmt: skip
# Of the kana blocks only the letters: their middle dot is written in Chinese names of foreigners.
SCRIPTS = (
    (range(0x3041, 0x3097), KANA), (range(0x30A1, 0x30FB), KANA), (range(0x3400, 0x4DC0), HAN_SCRIPT),
    (range(0x4E00, 0xA000), HAN_SCRIPT),
)  # fmt: skip
LATIN_END = 0x0250


def _is_alphanumeric(code: int) -> bool:
    """Whether `str.isalnum` is true in this release of Unicode."""
    return unicodedata.category(chr(code))[0] == "L" or unicodedata.numeric(chr(code), None) is not None


def _is_letter(code: int) -> bool:
    """Whether a code point counts for the `body` channel; above the first plane all but emoji, symbols and tags do."""
    if code >= PLANE:
        return code not in range(0x1F000, 0x20000) and code < 0xE0000
    is_written = any(code in block for block in WRITTEN_MARKS) and unicodedata.category(chr(code)) in {"Mn", "Mc"}
    return is_written or _is_alphanumeric(code)


def _traits(code: int) -> int:
    """Return LETTER, ALPHANUMERIC and NON_STARTER of a code point, and its script."""
    is_non_starter = 0x80 <= code < 2 * PLANE and unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0])
    traits = LETTER * _is_letter(code) | ALPHANUMERIC * _is_alphanumeric(code)
    return traits | NON_STARTER * bool(is_non_starter) | _script(code)


def _script(code: int) -> int:
    if code >= PLANE:
        return HAN_SCRIPT if 2 * PLANE <= code < 4 * PLANE else 0
    for block, script in SCRIPTS:
        if code in block:
            return script
    if unicodedata.category(chr(code))[0] != "L":
        return 0
    return LATIN if code < LATIN_END else OTHER_SCRIPT


# The exact form: kinds as `src/text/exact_form.rs` has them. ----------------------------------------------------------

NOTHING, SPACE, CLOSING, EXACT_LETTER, EXACT_HAN, DIGIT, MARK, SIGN, UNIT, CURRENCY, DASH, LONG_DASH = range(12)
POINT, COMMA, APOSTROPHE, BETWEEN, COMPARE, ARROW, NUMBER_SIGN, POWER, STAR, PRIME = range(12, 22)
HAS_PLAIN = 32
"""Beside a kind: another character is written for this one."""
# Characters by kind that the general category does not tell, from the folded forms.
KINDS_OF = {
    # Quotes, bullets, ellipses; lines under and through a text.
    NOTHING: "」』|∖∣⋅∙⋆⋮⋯⋰⋱⁒▷◁◸◹◺◻◼◽◾\u0332\u0333\u0335\u0336",
    SIGN: "+✓✔☑✅✗✘✕✖☒❌❎☐♀♂♭♮",
    UNIT: "%٪‰؉‱°",
    DASH: "-‐‒–−",
    LONG_DASH: "—―⸺⸻─~〜∼",
    POINT: ".٫",
    COMMA: ",٬",
    APOSTROPHE: "'’‘`ʹʺʻʼʽʾʿ",
    BETWEEN: ":∶/⁄∕*∗",
    COMPARE: "<=>",
    ARROW: "▲△▴▵▼▽▾▿⬆⬇⬅➡",
    NUMBER_SIGN: "#♯",
    POWER: "^",
    STAR: "★☆⭐",
    PRIME: "′",
}
ARROWS = (range(0x2190, 0x2200), range(0x27F0, 0x2800), range(0x2900, 0x2980))
BRAILLE = range(0x2801, 0x2900)
# Characters that say the same, first the one written. Of the Han, traditional forms that t2s leaves, since in
# a few words they are simplified characters too.
SAME = (
    "-‐‒–−—―⸺⸻─~〜∼", ".٫", ":∶", "/⁄∕", "*∗", "#♯", "%٪", "‰؉", "✓✔☑✅", "✗✘✕✖☒❌❎", "★⭐", "×⨯", "≤≦⩽", "≥≧⩾",
    "着著", "背揹", "复覆", "征徵", "干乾", "借藉", "了瞭", "么麼麽",
)  # fmt: skip
HAN_AND_KANA = (range(0x2E80, 0x3000), range(0x3005, 0x3008), range(0x3041, 0x3100), range(0x31F0, 0x3200), *HAN)


def _exact_kind(code: int) -> int:
    """Return the kind of a code point, and HAS_PLAIN."""
    if code >= PLANE:
        return NOTHING if not _is_letter(code) else EXACT_HAN if code >= 2 * PLANE else EXACT_LETTER
    character = chr(code)
    has_plain = HAS_PLAIN * any(character in same[1:] for same in SAME)
    for kind, characters in KINDS_OF.items():
        if character in characters:
            return kind | has_plain
    if _is_alphanumeric(code):
        is_han = any(code in block for block in HAN_AND_KANA)
        return has_plain | (DIGIT if character in "0123456789" else EXACT_HAN if is_han else EXACT_LETTER)
    if character.isspace():
        return SPACE
    if any(code in block for block in ARROWS):
        return ARROW
    by_category = {"Mn": MARK, "Mc": MARK, "Sc": CURRENCY, "Sm": SIGN, "Pe": CLOSING}
    return has_plain | (SIGN if code in BRAILLE else by_category.get(unicodedata.category(character), NOTHING))


# Word boundaries: kinds as `src/segmentation/word_boundaries.rs` has them. --------------------------------------------

# The last two are only states: before the first character, and before one that the last belongs to.
(
    OTHER, CR, LF, NEWLINE, WORD_SPACE, DOUBLE_QUOTE, SINGLE_QUOTE, CURLY_QUOTE, MID_NUM, MID_NUM_LET, MID_LETTER,
    NUMERIC, WORD_LETTER, VOWEL, PICTOGRAPH_LETTER, HEBREW, EXTEND_NUM_LET, IGNORED, JOINER, KATAKANA, FLAG,
    PICTOGRAPH, START, GLUE,
) = range(24)  # fmt: skip
UNSPACED = 32
"""The bit of a character in a script without spaces, beside its kind."""
STATES = 32
JOIN, BREAK, LOOK = 0, 1, 2
"""Verdicts on two characters: no boundary between them, a boundary, a third one decides."""
CURLY = "\u2019"
VOWELS = "aàáâeèéêiìíîoòóôuùúûAÀÁÂEÈÉÊIÌÍÎOÒÓÔUÙÚÛ\u0130"
UNSPACED_SCRIPTS = ("Thai", "Lao", "Khmer", "Myanmar", "Hiragana", "Katakana", "Han")
OF_PROPERTY = {
    "CR": CR, "LF": LF, "Newline": NEWLINE, "WSegSpace": WORD_SPACE, "DoubleQuote": DOUBLE_QUOTE,
    "SingleQuote": SINGLE_QUOTE, "MidNum": MID_NUM, "MidNumLet": MID_NUM_LET, "MidLetter": MID_LETTER,
    "Numeric": NUMERIC, "ALetter": WORD_LETTER, "HebrewLetter": HEBREW, "ExtendNumLet": EXTEND_NUM_LET,
    "Format": IGNORED, "Extend": IGNORED, "ZWJ": JOINER, "Katakana": KATAKANA, "RegionalIndicator": FLAG,
}  # fmt: skip


def _bits(*kinds: int) -> int:
    return sum(1 << kind for kind in set(kinds))


NEWLINES = _bits(CR, LF, NEWLINE)
LETTERS = _bits(WORD_LETTER, VOWEL, PICTOGRAPH_LETTER, HEBREW)
INVISIBLE = _bits(IGNORED, JOINER)
WORDS = LETTERS | _bits(NUMERIC, EXTEND_NUM_LET)
APOSTROPHES = _bits(SINGLE_QUOTE, CURLY_QUOTE)
MID_LETTERS = APOSTROPHES | _bits(MID_NUM_LET, MID_LETTER)
MID_NUMBERS = APOSTROPHES | _bits(MID_NUM_LET, MID_NUM)


def _word_kinds() -> bytearray:
    """Return the kind of each code point, and UNSPACED."""
    kinds = bytearray(CODES)

    def set_all(pattern: str, kind: Callable[[int], int]) -> None:
        for found in regex.finditer(pattern, _all_characters()):
            kinds[ord(found[0])] = kind(kinds[ord(found[0])])

    for name, kind in OF_PROPERTY.items():
        set_all(rf"\p{{WB={name}}}", lambda _, kind=kind: kind)  # type: ignore[misc]
    for vowel in VOWELS:
        kinds[ord(vowel)] = VOWEL
    kinds[ord(CURLY)] = CURLY_QUOTE
    set_all(r"\p{Extended_Pictographic}", lambda kind: PICTOGRAPH_LETTER if kind == WORD_LETTER else PICTOGRAPH)
    for script in UNSPACED_SCRIPTS:
        set_all(rf"\p{{{script}}}", lambda kind: kind | UNSPACED)
    return kinds


def _verdict(state: int, kind: int) -> int:
    """Return whether there is a boundary before a character of a kind."""
    before, after = 1 << state, 1 << kind
    if kind == FLAG:
        return LOOK  # a long run of them may begin
    if state == START or (state, kind) == (CR, LF):
        return JOIN
    if (before | after) & NEWLINES:
        return BREAK
    if state in {GLUE, FLAG} or after & INVISIBLE or _are_joined(state, kind):
        return JOIN
    return LOOK if after & _bits(PICTOGRAPH, PICTOGRAPH_LETTER) or _may_be_joined(state, kind) else BREAK


def _are_joined(state: int, kind: int) -> bool:
    """Whether there is no boundary between characters of two kinds, whatever is beside them."""
    both = _bits(state, kind)
    if not both & ~WORDS or not both & ~_bits(KATAKANA, EXTEND_NUM_LET) or state == kind == WORD_SPACE:
        return True
    return bool(1 << state & APOSTROPHES and kind == VOWEL) or (state, kind) == (HEBREW, SINGLE_QUOTE)


def _may_be_joined(state: int, kind: int) -> bool:
    """Whether there is no boundary between characters of two kinds if a third one is of a word or a number, too."""
    before, after = 1 << state, 1 << kind
    in_word = (before & LETTERS and after & MID_LETTERS) or (before & MID_LETTERS and after & LETTERS)
    in_number = (state == NUMERIC and after & MID_NUMBERS) or (before & MID_NUMBERS and kind == NUMERIC)
    return bool(in_word or in_number) or {state, kind} == {HEBREW, DOUBLE_QUOTE}


def _next(state: int, kind: int) -> int:
    """Return the state after a character of a kind."""
    if 1 << kind & INVISIBLE:
        if state in {START, GLUE, FLAG}:
            return GLUE
        return OTHER if 1 << state & (NEWLINES | 1 << WORD_SPACE) else state
    return OTHER if state == kind == FLAG else kind  # the second letter completes the flag


# Arrays. -------------------------------------------------------------------------------------------------------------

BLOCK = 256


def _by_block(values: Iterable[int]) -> tuple[bytes, bytes]:
    """Return a table of all code points: of each block of 256 the number of its values, uint16, and those values."""
    everything = bytes(values)
    blocks: dict[bytes, int] = {}
    numbers = [
        blocks.setdefault(everything[start : start + BLOCK], len(blocks)) for start in range(0, len(everything), BLOCK)
    ]
    return array("H", numbers).tobytes(), b"".join(blocks)


def _mapping(texts: Mapping[int, str]) -> tuple[bytes, bytes, bytes]:
    """Return what code points become: these, ascending, where the text of each ends, and the texts: uint32."""
    codes = array("I", sorted(texts))
    parts = [texts[code] for code in codes]
    return codes.tobytes(), array("I", accumulate(map(len, parts))).tobytes(), "".join(parts).encode("utf-32-le")


if __name__ == "__main__":
    main()
