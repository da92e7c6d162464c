"""Compute where two texts differ, passage by passage, for side-by-side display.

How: sentences are aligned first, which keeps long texts cheap. Sentences that replace each other are then
aligned by words, or by characters in scripts without spaces. Texts are folded for the alignment, so width,
case and the script of Chinese do not count as differences, as in fingerprints. Equal passages are returned
in full; the display may shorten them. Pieces are cut where a host's own text begins or ends.
Invariant: the pieces of a side, joined, are its text.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from rapidfuzz.distance import Indel  # difflib is cubic in repeated sentences, and pages are untrusted

from dedup_service._native import fold

Spans = Sequence[tuple[int, int]]
"""Places (start, stop) of a text, ascending and disjoint."""

MAX_UNITS = 4000
"""Most words of a run of sentences to align. Memory and time are quadratic: here 2 MB, some ms."""

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
    """A piece of text. alike: the other side has the same text at this place. host: it is a host's own text."""

    text: str
    alike: bool
    host: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of sentences of each side, aligned with each other. alike: both runs are equal."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    alike: bool


def passages(left: str, right: str, host_spans: tuple[Spans, Spans] = ((), ())) -> list[Passage]:
    """Return the two texts as aligned passages, in their order.

    host_spans: where each text is a host's own: places (start, stop), ascending and disjoint.
    """
    found = _passages(left, right)
    if not any(host_spans):
        return found
    lefts, rights = (_HostMarker(spans) for spans in host_spans)
    return [Passage(lefts.marked(passage.left), rights.marked(passage.right), passage.alike) for passage in found]


def _passages(left: str, right: str) -> list[Passage]:
    lefts, rights = sentences(left), sentences(right)
    result = []
    for tag, a, b, c, d in _aligned(lefts, rights):
        one, other = "".join(lefts[a:b]), "".join(rights[c:d])
        if tag == "equal":
            result.append(Passage((Piece(one, alike=True),), (Piece(other, alike=True),), alike=True))
        else:
            result.append(Passage(*_pieces(one, other), alike=False))
    return result


class _HostMarker:
    """Cuts the pieces of one text, in their order, where spans of host text begin and end."""

    def __init__(self, spans: Spans) -> None:
        self._edges = [edge for span in spans for edge in span]
        self._at = 0

    def marked(self, pieces: Iterable[Piece]) -> tuple[Piece, ...]:
        """Return the next pieces, cut and marked."""
        return tuple(part for piece in pieces for part in self._parts(piece))

    def _parts(self, piece: Piece) -> Iterator[Piece]:
        start, stop = self._at, self._at + len(piece.text)
        self._at = stop
        first, last = bisect_right(self._edges, start), bisect_left(self._edges, stop)
        for edge, (a, b) in enumerate(pairwise([start, *self._edges[first:last], stop]), first):
            if a < b:
                yield Piece(piece.text[a - start : b - start], piece.alike, host=edge % 2 == 1)


def unshared_numbers(left: str, right: str) -> tuple[list[str], list[str]]:
    """Return the numbers that each side has in excess of the other, as multisets, in text order."""
    lefts, rights = _NUMBER.findall(left), _NUMBER.findall(right)
    return _surplus(lefts, rights), _surplus(rights, lefts)


def _surplus(numbers: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the multiset difference, in the order of `numbers`."""
    unmatched, surplus = Counter(others), []
    for number in numbers:
        if unmatched[number]:
            unmatched[number] -= 1
        else:
            surplus.append(number)
    return surplus


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the white space after it; joined, they are the text."""
    return [sentence for sentence in _SENTENCE.findall(text) if sentence]


def _pieces(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    lefts, rights = _UNIT.findall(one), _UNIT.findall(other)
    if not (lefts and rights) or max(len(lefts), len(rights)) > MAX_UNITS:
        return _whole(one), _whole(other)
    left, right = [], []
    for tag, a, b, c, d in _aligned(lefts, rights):
        if b > a:
            left.append(Piece("".join(lefts[a:b]), alike=tag == "equal"))
        if d > c:
            right.append(Piece("".join(rights[c:d]), alike=tag == "equal"))
    return _merged(left), _merged(right)


def _merged(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Merge neighbouring pieces of one kind, and differing pieces with only white space between them."""
    merged: list[Piece] = []
    for index, piece in enumerate(pieces):
        blank = piece.text.isspace() and 0 < index < len(pieces) - 1
        alike = piece.alike and not (blank and not merged[-1].alike and not pieces[index + 1].alike)
        if merged and merged[-1].alike == alike:
            merged[-1] = Piece(merged[-1].text + piece.text, alike)
        else:
            merged.append(Piece(piece.text, alike))
    return tuple(merged)


def _whole(text: str) -> tuple[Piece, ...]:
    return (Piece(text, alike=False),) if text else ()


def _aligned(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """Return (tag, start, stop, start, stop) of runs: `equal` ones, compared after folding, and those between."""
    runs: list[tuple[str, int, int, int, int]] = []
    numbers: dict[str, int] = {}  # rapidfuzz compares hashes, and "" and "\0" have the same one
    left, right = ([numbers.setdefault(fold(text).strip(), len(numbers)) for text in side] for side in (one, other))
    for code in Indel.opcodes(left, right):
        if code.tag != "equal" and runs and runs[-1][0] != "equal":
            _, a, _, c, _ = runs.pop()
            runs.append(("replace", a, code.src_end, c, code.dest_end))
        else:
            runs.append((code.tag, code.src_start, code.src_end, code.dest_start, code.dest_end))
    return runs
