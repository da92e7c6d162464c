"""A double-array trie over code points: from the words of a dictionary to nodes that compiled loops walk.

A node is a 64-bit word, so that a step to a child reads one cache line:

    bits 0-23: base, where its children begin | 24-39: code of its last letter | 40-55: value

The child of node s by the letter with code c is node base(s) + c, if that node has the code c; else there is none.
Nodes of the first level are at the place of their code and are reached without a step: no child has such a place.
Node 0 is nobody's: its code is one that no letter has, and its base leads to no child. A base belongs to one parent,
so the code alone says whose child a node is.

Source: Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", IEEE TSE 15(9), 1989.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel_inline, long_kernel

Nodes = npt.NDArray[np.int64]
_Places = npt.NDArray[np.int32]

FIRST_PLANE = 0x10000
"""Letters have code points below this one; words with others are left out."""

NO_NODE = 0
MAX_VALUE = 0xFFFF
_BASE, _CODE_SHIFT, _CODE, _VALUE_SHIFT = 0xFF_FFFF, 24, 0xFFFF, 40
_NO_CODE = 0xFFFF
_PATIENCE = 40
"""Places tried before the search for a family goes on from where it ended: earlier gaps are too small for its like."""

_FAMILIES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """The words of a dictionary, each with a value.

    codes: uint16[65536], 1 and more for the code points that are letters, most frequent first; 0 for all others.
    nodes: int64[m], see above.
    """

    codes: npt.NDArray[np.uint16]
    nodes: Nodes

    @classmethod
    def of(cls, values: Mapping[str, int], letters: npt.NDArray[np.bool_]) -> Self:
        """Return the trie of words: word → value, 1 to MAX_VALUE, or 0 for a word that is not to be found.

        letters: bool[65536]. Words with a code point that is not one of them are left out. ConfigurationError if there
        are more words than nodes can have addresses for: some ten million.
        """
        words = [word for word in values if word]
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        known = points < FIRST_PLANE
        known[known] = letters[points[known]]
        complete = np.logical_and.reduceat(known, starts) if words else np.zeros(0, np.bool_)
        codes = _codes(points[known], letters)
        coded = np.zeros(len(points), np.int64)
        coded[known] = codes[points[known]]
        value = np.fromiter((values[word] for word in words), np.int64, len(words))
        return cls(codes, _nodes(coded, starts[complete], sizes[complete], value[complete], int(codes.max())))


def _codes(points: npt.NDArray[np.int64], letters: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
    """Return the codes of letters: small ones for those of many words, so that families are close together."""
    uses = np.bincount(points, minlength=FIRST_PLANE)
    uses[~letters] = -1
    order = np.argsort(-uses, kind="stable")[: int(letters.sum())]
    codes = np.zeros(FIRST_PLANE, np.uint16)
    codes[order] = np.arange(1, len(order) + 1)
    return codes


def _nodes(
    codes: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    last_code: int,
) -> Nodes:
    """Return the nodes of words, whose letters have codes[start : start + size]; last_code: of any letter."""
    parents, letters = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    ends = np.zeros(len(starts), np.int64)  # the node of each word so far; 0 is the root
    count = 1
    for depth in range(int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > depth)
        families, where = np.unique(ends[longer] << 16 | codes[starts[longer] + depth], return_inverse=True)
        ends[longer] = count + where
        parents.append(families >> 16)
        letters.append(families & 0xFFFF)
        count += len(families)
    parent, letter = np.concatenate(parents)[1:], np.concatenate(letters).astype(np.int32)
    children = np.bincount(parent, minlength=count).astype(np.int32)
    first = np.zeros(count, np.int32)
    first[parent[::-1]] = np.arange(count - 1, 0, -1)  # children are neighbours: the lowest number is written last
    order = np.flatnonzero(children)
    order = order[order > 0]
    order = order[np.argsort(-children[order], kind="stable")]
    room = 3 * count + 8 * last_code + 1024
    places, bases, used = place_families(order, first, children, letter, last_code, room)
    if used < 0 or used + last_code >= _BASE:
        raise ConfigurationError(f"a dictionary of {len(starts):,} words has more nodes than there are addresses")
    nodes = np.full(used + last_code + 1, _NO_CODE << _CODE_SHIFT, np.int64)
    deeper = np.flatnonzero(places > last_code)
    nodes[places[deeper]] = letter[deeper].astype(np.int64) << _CODE_SHIFT
    # What has no children leads to where no node has a code: behind all of them.
    nodes |= used
    nodes[places] = nodes[places] & ~_BASE | np.where(children > 0, bases, used)
    nodes[NO_NODE] = _NO_CODE << _CODE_SHIFT | used
    nodes[places[ends]] |= values << _VALUE_SHIFT
    return nodes


@long_kernel
def place_families(
    order: npt.NDArray[np.int64], first: _Places, children: _Places, letters: _Places, last_code: int, room: int
) -> tuple[_Places, _Places, int]:
    """Find a place for every node: int32[n], and a base for every node with children: int32[n].

    order: nodes with children but the root, those with most children first. Those of node v are `first[v]` and the
    children[v] - 1 behind it; `letters` has their codes, ascending. Also returns the number of places in use, -1 if
    there are more than `room`.
    """
    places, bases = np.zeros(len(first), np.int32), np.zeros(len(first), np.int32)
    # Free places are a list: following[at] and before[at] are its neighbours, `head` is its first one.
    following, before = np.arange(1, room + 2).astype(np.int32), np.arange(-1, room).astype(np.int32)
    taken, taken_bases = np.zeros(room + 1, np.bool_), np.zeros(room + 1, np.bool_)
    head = last_code + 1  # places of the first level are not free
    taken[:head] = True
    before[head] = -1
    used = head
    for node in range(first[0], first[0] + children[0]):
        places[node] = letters[node]
    begins = np.zeros(_FAMILIES, np.int64)
    for node in order:
        codes = letters[first[node] : first[node] + children[node]]
        kind = min(len(codes), _FAMILIES - 1)
        at = begins[kind] if len(codes) > 1 and begins[kind] else head
        while at < room and taken[at]:
            at += 1
        base, tries = first_fit(codes, at, following, taken, taken_bases, room - last_code - 1)
        if base < 0:
            return places, bases, -1
        if len(codes) > 1 and tries > _PATIENCE:
            begins[kind] = base + codes[0]
        bases[node] = base
        taken_bases[base] = True
        for number in range(len(codes)):
            place = base + codes[number]
            places[first[node] + number] = place
            taken[place] = True
            if before[place] >= 0:
                following[before[place]] = following[place]
            else:
                head = following[place]
            before[following[place]] = before[place]
            used = max(used, place + 1)
    return places, bases, used


@kernel_inline
def first_fit(
    codes: _Places,
    at: int,
    following: _Places,
    taken: npt.NDArray[np.bool_],
    taken_bases: npt.NDArray[np.bool_],
    end: int,
) -> tuple[int, int]:
    """Return the first base where a family of codes fits, from the free place `at` on for its first one.

    Also returns how many were tried. The base is -1 if that place would be `end` or behind it.
    """
    tries = 0
    while at < end:
        base = at - codes[0]
        fits = base > 0 and not taken_bases[max(base, 0)]
        for number in range(1, len(codes) if fits else 0):
            if taken[base + codes[number]]:
                fits = False
                break
        if fits:
            return int(base), tries
        tries += 1
        at = following[at]
    return -1, tries


@kernel_inline
def child(nodes: Nodes, node: int, code: int) -> int:
    """Return the child of a node by the letter with a code, or NO_NODE; without a branch, since one would be guessed.

    Code 0, of what is no letter, leads to no child.
    """
    place = child_place(nodes[np.uint64(node)], code)
    return int(place & if_reached(nodes[np.uint64(place)], code))


@kernel_inline
def child_place(word: np.int64, code: int) -> int:
    """Return where the child of a node with this word is by the letter with a code, if it has one."""
    return int((word & _BASE) + code)


@kernel_inline
def if_reached(word: np.int64, code: int) -> int:
    """Return -1, all bits set, if the letter with a code leads to the node with this word; else 0."""
    return int(((((word >> _CODE_SHIFT) & _CODE) ^ code) - 1) >> 63)


@kernel_inline
def value_of(nodes: Nodes, node: int) -> int:
    """Return the value of a node: 0 if no word ends there."""
    return value_in(nodes[np.uint64(node)])


@kernel_inline
def value_in(word: np.int64) -> int:
    """Return the value of the node with this word."""
    return int((word >> _VALUE_SHIFT) & MAX_VALUE)
