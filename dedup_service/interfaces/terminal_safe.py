"""Text of strangers, made safe to show: nothing in it moves the cursor, colours, hides or turns anything round.

Control characters become their pictures (␛), whatever else is invisible or reorders text its code point (<U+202E>).
Joiners inside words (U+200C, U+200D) stay: Persian and Hindi are written with them, and they hide nothing.
"""

import unicodedata

__all__ = ["terminal_safe"]

STAY = frozenset("\u200c\u200d")
SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
PICTURES = 0x2400
DELETE, DELETE_PICTURE = 0x7F, "␡"


def terminal_safe(text: str) -> str:
    r"""Return `text` on one line and without any character that a terminal would act upon.

    >>> terminal_safe("a\x1b[31mred \u202ecod.exe")
    'a␛[31mred <U+202E>cod.exe'
    """
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in "\n\t\r":
        return " "
    code = ord(character)
    if character in STAY or unicodedata.category(character) not in SHOWN:
        return character
    if code < ord(" "):
        return chr(PICTURES + code)
    return DELETE_PICTURE if code == DELETE else f"<U+{code:04X}>"
