"""Remove the characters that lxml refuses to write, raw or as references, from a page in UTF-8.

trafilatura gives up on a page with them. One compiled pass finds out whether the page may have any, in a tenth of
the time of removing them: of 987 real pages, most have none.
"""

import re

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel

CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # U+FFFE, U+FFFF
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])(?![0-9])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
_CHARACTER, _REFERENCE = 1, 2
_TAB, _LINE_FEED, _RETURN, _SPACE, _AMPERSAND, _HASH = 9, 10, 13, 32, 38, 35


def without_control_characters(page: bytes) -> bytes:
    r"""Return a page, in UTF-8, without control characters and noncharacters, and without references to them.

    >>> without_control_characters(b"<p>a\x00b&#1;c&#65;")
    b'<p>abc&#65;'
    """
    found = suspects(np.frombuffer(page, dtype=np.uint8))
    if found & _CHARACTER:
        page = page.translate(None, CONTROL_BYTES)
        for sequence in NONCHARACTERS:
            page = page.replace(sequence, b"")
    return _CONTROL_REFERENCE.sub(b"", page) if found else page


@kernel
def suspects(page: npt.NDArray[np.uint8]) -> int:
    """Return _CHARACTER if the page may have characters to remove, plus _REFERENCE if it has any reference by number.

    page: uint8[n]. Every condition is evaluated for every byte: with branches, the loop would not use vectors.
    """
    found = 0
    for i in range(len(page)):
        byte = page[i]
        is_control = (byte < _SPACE) & (byte != _TAB) & (byte != _LINE_FEED) & (byte != _RETURN)
        found |= is_control * _CHARACTER
    for i in range(len(page) - 1):
        found |= ((page[i] == _AMPERSAND) & (page[i + 1] == _HASH)) * _REFERENCE
    for i in range(len(page) - 2):
        is_noncharacter = (page[i] == 0xEF) & (page[i + 1] == 0xBF) & (page[i + 2] >= 0xBE)
        found |= is_noncharacter * _CHARACTER
    return found
