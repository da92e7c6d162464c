"""Make text from web pages safe for a terminal: it cannot move the cursor, colour, hide or reorder text.

Control characters become their pictures (␛); other invisible or reordering characters become their code
points (<U+202E>). Joiners inside words (U+200C, U+200D) are kept: Persian and Hindi need them, and they
hide nothing.
"""

import unicodedata

JOINERS = frozenset("\u200c\u200d")
UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
PICTURES = 0x2400
"""Code point of the picture of NUL; those of the other control characters follow it."""
DELETE, DELETE_PICTURE = 0x7F, "␡"


def terminal_safe(text: str) -> str:
    r"""Return `text` on one line, without any character that a terminal would act on.

    >>> terminal_safe("a\x1b[31mred \u202ecod.exe")
    'a␛[31mred <U+202E>cod.exe'
    """
    return "".join(map(_safe, text))


def _safe(character: str) -> str:
    if character in "\n\t\r":
        return " "
    code = ord(character)
    if character in JOINERS or unicodedata.category(character) not in UNSAFE_CATEGORIES:
        return character
    if code < ord(" "):
        return chr(PICTURES + code)
    return DELETE_PICTURE if code == DELETE else f"<U+{code:04X}>"
