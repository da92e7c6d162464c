"""Where two texts differ, passage by passage, for people who look at them side by side.

How: sentences are aligned first, so that a long text costs little; sentences that stand in each other's place are then
aligned by words (by letters where no spaces are written). Passages that are alike are given whole; whoever shows them
may shorten them. Like fingerprints, the alignment does not see width, case, or the script of Chinese: texts are folded
for it. Invariant: the pieces of a side, joined, are its text.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import regex
from rapidfuzz.distance import Indel  # difflib's time is cubic in repeated sentences, which a stranger may write

from dedup_service.core.text.normalise import fold

__all__ = ["Passage", "Piece", "numbers_apart", "passages"]

MAX_UNITS = 4000
"""Words of a sentence run that are aligned: memory and time go with the square, 2 MB and some ms."""

_SENTENCE = regex.compile(
    r"[^。！？!?；;…\n.]*(?:\.(?!\s)[^。！？!?；;…\n.]*)*(?:[。！？!?；;….]+[”’\"')\]】》]*|\n|$)\s*"
)
_NUMBER = regex.compile(r"\p{Nd}+(?:[.,:]\p{Nd}+)*%?")
_UNIT = regex.compile(
    r"[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hangul}\p{M}]+|\p{Nd}+(?:[.,]\p{Nd}+)*|\s+|.",
    regex.S,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, and whether the other side has it in the same place."""

    text: str
    alike: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of sentences of each side that belong together. alike: they are the same."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    alike: bool


def passages(left: str, right: str) -> list[Passage]:
    """Return the two texts as passages, in their order."""
    ours, theirs = sentences(left), sentences(right)
    found = []
    for tag, a, b, c, d in _aligned(ours, theirs):
        one, other = "".join(ours[a:b]), "".join(theirs[c:d])
        if tag == "equal":
            found.append(Passage((Piece(one, alike=True),), (Piece(other, alike=True),), alike=True))
        else:
            found.append(Passage(*_pieces(one, other), alike=False))
    return found


def numbers_apart(left: str, right: str) -> tuple[list[str], list[str]]:
    """Return the numbers that only one side has, or has more often, in their order: those of the left, of the right."""
    ours, theirs = _NUMBER.findall(left), _NUMBER.findall(right)
    return _beyond(ours, theirs), _beyond(theirs, ours)


def _beyond(numbers: Sequence[str], others: Sequence[str]) -> list[str]:
    spare, found = Counter(others), []
    for number in numbers:
        if spare[number]:
            spare[number] -= 1
        else:
            found.append(number)
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a text with what follows them; joined they are the text."""
    return [found for found in _SENTENCE.findall(text) if found]


def _pieces(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    ours, theirs = _UNIT.findall(one), _UNIT.findall(other)
    if not (ours and theirs) or max(len(ours), len(theirs)) > MAX_UNITS:
        return _whole(one), _whole(other)
    left, right = [], []
    for tag, a, b, c, d in _aligned(ours, theirs):
        if b > a:
            left.append(Piece("".join(ours[a:b]), alike=tag == "equal"))
        if d > c:
            right.append(Piece("".join(theirs[c:d]), alike=tag == "equal"))
    return _smoothed(left), _smoothed(right)


def _smoothed(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Join pieces that differ and have only blanks between them."""
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        blank = piece.text.isspace() and 0 < at < len(pieces) - 1
        alike = piece.alike and not (blank and not found[-1].alike and not pieces[at + 1].alike)
        if found and found[-1].alike == alike:
            found[-1] = Piece(found[-1].text + piece.text, alike)
        else:
            found.append(Piece(piece.text, alike))
    return tuple(found)


def _whole(text: str) -> tuple[Piece, ...]:
    return (Piece(text, alike=False),) if text else ()


def _aligned(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """Return (tag, start, stop, start, stop) of what is `equal` once folded, and of what lies between."""
    found: list[tuple[str, int, int, int, int]] = []
    for at in Indel.opcodes([fold(text).strip() for text in one], [fold(text).strip() for text in other]):
        if at.tag != "equal" and found and found[-1][0] != "equal":
            _, a, _, c, _ = found.pop()
            found.append(("replace", a, at.src_end, c, at.dest_end))
        else:
            found.append((at.tag, at.src_start, at.src_end, at.dest_start, at.dest_end))
    return found
