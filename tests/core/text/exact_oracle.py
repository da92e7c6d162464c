"""The exact form by its definition: one rule a kind of character, each a question to the text around it."""

import re
import unicodedata

SAME = str.maketrans(
    "‐‒–−—―⸺⸻─~〜∼٫∶⁄∕∗♯٪؉✔☑✅✘✕✖☒❌❎⭐⨯≦⩽≧⩾著揹覆徵乾藉瞭麼麽",
    "------------.://*#%‰✓✓✓✗✗✗✗✗✗★×≤≤≥≥着背复征干借了么么",
)
DASHES = "-‐‒–−"
LONG_DASHES = "—―⸺⸻─~〜∼"
IGNORED = "|∖∣⋅∙⋆⋮⋯⋰⋱⁒▷◁◸◹◺◻◼◽◾\u0332\u0333\u0335\u0336"
APOSTROPHES = "'’‘`ʹʺʻʼʽʾʿ"
ARROWS = "\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f▲△▴▵▼▽▾▿⬆⬇⬅➡"
SIGNS = "+✓✔☑✅✗✘✕✖☒❌❎☐♀♂♭♮"
UNITS = "%٪‰؉‱°"
STARS = "★☆⭐"
CONTEXTUAL = f"{DASHES}{LONG_DASHES}.٫,٬{APOSTROPHES}:∶/⁄∕*∗#♯^{STARS}′{IGNORED}"
DASHES_AND_DIGIT = re.compile(f"[ {re.escape(DASHES)}{LONG_DASHES}]{{0,5}}[0-9]")
SKIPPED = re.compile(f"[\\s{re.escape(DASHES)}.٫<=>{ARROWS}]")
METRE = re.compile("[23](?![0-9])")
HAN = re.compile("[\u2e80-\u2fff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def exact_form_by_definition(folded: str) -> str:
    """Return the exact form of a folded text."""
    written: list[tuple[int, str]] = []
    for place, character in enumerate(folded):
        if is_written(folded[:place], character, folded[place + 1 :]):
            written.append((place, as_written(folded[:place], character, folded[place + 1 :])))
    return with_boundaries(folded, written)


def is_written(left: str, character: str, right: str) -> bool:
    """Whether a character between two parts of a text is in its exact form."""
    after_number = re.search(r"[0-9] ?\Z", blank(left)) is not None
    before_number = re.match(r" ?[0-9]", blank(right)) is not None
    if is_mark(character):
        return not blank(left or " ").endswith(" ") or character == "\u030a"
    if character in DASHES + LONG_DASHES:
        range_ = after_number and DASHES_AND_DIGIT.match(blank(right)) is not None
        return range_ or (character in DASHES and (is_minus(left, right) or is_grade(left, right)))
    if re.fullmatch(f"[{ARROWS}<=>]", character):
        return compares(left, character, right)
    if character not in CONTEXTUAL:
        everywhere = character in SIGNS + UNITS or unicodedata.category(character) in ("Sc", "Sm")
        return everywhere or is_letter(character) or "\u2801" <= character <= "\u28ff"
    return (
        (character in ":∶/⁄∕*∗" and ((after_number and before_number) or is_of_unit(left, character, right)))
        or (character in ".٫" and re.match("[0-9]", right) is not None and leads_point(left))
        or (character in "#♯" and (before_number or re.search(r"[a-z0-9]\Z", left) is not None))
        or (character == "^" and is_exponent(right) and not (left.endswith("m") and METRE.match(right)))
        or (character in STARS and (left[-1:] in tuple(STARS) or right[:1] in tuple(STARS)))
        or (character == "′" and re.search(r"[0-9]′*\Z", left) is not None)
    )


def is_exponent(right: str) -> bool:
    """Whether a text begins with a letter, a digit or a signed number."""
    signed = right[:1] in tuple(DASHES) or is_sign(right[:1])
    return is_letter(right[:1]) or (signed and re.match("[0-9]", right[1:]) is not None)


def as_written(left: str, character: str, right: str) -> str:
    """Return what a character is written as."""
    if character in "<>" and right.startswith("="):
        return "≤" if character == "<" else "≥"
    if character == "\u030a" and blank(left or " ").endswith(" "):
        return "°"
    return character.translate(SAME)


def with_boundaries(folded: str, written: list[tuple[int, str]]) -> str:
    """Return the characters written at their places, with a space between numbers that something separates."""
    text = ""
    groups, separator = False, ""
    for number, (place, character) in enumerate(written):
        before, last = written[number - 1] if number else (-1, "")
        if last.isdecimal() and before + 1 < place and (character.isdecimal() or character == "."):
            run = re.search(r"[0-9]+\Z", folded[: before + 1])
            found = grouping(folded[before + 1 : place])
            three = re.match("[0-9]{3}(?![0-9])", folded[place:]) is not None
            fits = found == separator if separator else run is not None and len(run[0]) <= 3
            if found and three and groups and fits:
                separator = found
            else:
                text, separator, last = text + " ", "", ""
        if character.isdecimal() and not last.isdecimal():
            groups, separator = character != "0" and last != ".", ""
        text += character
    return text


def grouping(between: str) -> str:
    """Return the separator of thousands that a text between digits is; "" if it is none."""
    if re.fullmatch(r"\s+", between):
        return " "
    if re.fullmatch(rf"[{APOSTROPHES}]", between):
        return "'"
    return "," if re.fullmatch(r"\s*[,٬]\s*", between) else ""


def is_minus(left: str, right: str) -> bool:
    """Whether a dash is the sign of the number after it."""
    if not re.match("[0-9]", right):
        currency = right and unicodedata.category(right[0]) == "Sc" and re.match(" ?[0-9]", blank(right[1:]))
        if not currency and not re.match("[.٫][0-9]", right):
            return False
    joined = left[-1:]
    if joined == "" or HAN.match(joined) or "\U00020000" <= joined < "\U000e0000":
        return True
    return not (is_letter(joined) or is_mark(joined) or joined in UNITS + DASHES + LONG_DASHES or is_closing(joined))


def is_grade(left: str, right: str) -> bool:
    """Whether a dash ends a word of one Latin letter."""
    if right and (is_letter(right[0]) or is_mark(right[0]) or right[0] in DASHES + LONG_DASHES):
        return False
    if not re.search(r"[a-z]\Z", left):
        return False
    before = left[-2:-1]
    return not (before and ((is_letter(before) and not is_han(before)) or is_mark(before) or before in APOSTROPHES))


def is_of_unit(left: str, character: str, right: str) -> bool:
    """Whether a slash is in a unit after a number."""
    if character != "/" or not right or not is_letter(right[0]) or right[0] in "0123456789":
        return False
    letters = 0
    while left and letters < 4 and is_letter(left[-1]) and left[-1] not in "0123456789":
        left, letters = left[:-1], letters + 1
    return letters > 0 and re.search(r"[0-9] ?\Z", blank(left)) is not None


def leads_point(left: str) -> bool:
    """Whether a point after this text can be that of a decimal fraction."""
    last = left[-1:]
    if last == "" or last in "0123456789":
        return True
    return not (is_letter(last) or is_mark(last) or last in UNITS + ".٫" or is_closing(last))


def compares(left: str, character: str, right: str) -> bool:
    """Whether a comparison or arrow is beside a number, other signs aside."""
    if character == "=" and left[-1:] in ("<", ">"):
        return False
    for following in right[:6]:
        if following in "0123456789":
            return True
        category = unicodedata.category(following)
        skipped = SKIPPED.match(following) or is_sign(following) or category == "Sc"
        if not skipped:
            break
    bare = left[:-1] if left[-1:].isspace() else left
    last = bare[-1:]
    if not last:
        return False
    if last in "0123456789" + UNITS:
        return True
    if last == "\u030a":
        return False
    both = (character in "<=>" and last in "<=>") or re.fullmatch(f"[{ARROWS}]{{2}}", character + last)
    return bool(both) and is_written(bare[:-1], last, left[len(bare) :] + character + right)


def is_letter(character: str) -> bool:
    """Whether a character is a letter or a digit, not an apostrophe or a mark of the planes below."""
    if len(character) != 1 or character in APOSTROPHES:
        return False
    code = ord(character)
    if code >= 0x10000:
        return not (0x1F000 <= code < 0x20000 or code >= 0xE0000)
    return character.isalnum()


def is_han(character: str) -> bool:
    """Whether a character is Han or kana."""
    return HAN.match(character) is not None or ord(character) >= 0x20000


def is_mark(character: str) -> bool:
    """Whether a character is a combining mark."""
    return unicodedata.category(character) in ("Mn", "Mc") and character not in IGNORED


def is_closing(character: str) -> bool:
    """Whether a character is a closing bracket, not a quotation mark."""
    return unicodedata.category(character) == "Pe" and character not in "」』"


def is_sign(character: str) -> bool:
    """Whether a character is a sign that is written everywhere, not of a unit or a currency."""
    if len(character) != 1 or re.match(f"[{re.escape(CONTEXTUAL)}{ARROWS}<=>]", character):
        return False
    return character in SIGNS or "\u2801" <= character <= "\u28ff" or unicodedata.category(character) == "Sm"


def blank(text: str) -> str:
    """Return a text with its white space as spaces."""
    return re.sub(r"\s", " ", text)
