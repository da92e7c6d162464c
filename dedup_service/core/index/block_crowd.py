"""Entries of one fingerprint, sorted: a treap for each fingerprint that several entries have.

Every operation on n entries takes O(log n) steps, and the first m in order take O(m + log n), so that a million
identical pages are inserted, probed with a limit, and removed in any order without quadratic cost. A node takes 16
bytes; fingerprints with one entry, nearly all of them, have none.

A node is a row number (uint32), its left and its right child; node 0 is none. The header of a crowd is a node,
too: its size and its root. Priorities are a hash of the row number.

Source: Seidel, Aragon, "Randomized Search Trees", Algorithmica 1996.
"""

import numpy as np

from dedup_service.core.index.block_lines import LINES_FREE, NODES, TABLES, Integers, item_address
from dedup_service.core.kernels import kernel_inline, load32, store32

CROWD = 0xF000_0000
"""Values from here on are crowds: the number of the header node is added. Smaller ones are numbers."""

NODE_BYTES = 16
_NUMBER, _LEFT, _RIGHT = 0, 4, 8
_SIZE, _ROOT = 0, 4

STACK = 256
"""Depth up to which a crowd is read: three times the expected depth of 2**28 nodes."""

_FIRST = 3 * TABLES + 4
NODES_USED, NODES_ROOM, NODES_FREE, FREE_NODE = range(_FIRST, _FIRST + 4)
"""Indexes into the counters, after those of `block_lines`."""

assert LINES_FREE < _FIRST


@kernel_inline
def _priority(number: int) -> int:
    mixed = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return int(np.int64(mixed >> np.uint64(32)))


@kernel_inline
def _node(node: int, bases: Integers) -> int:
    return item_address(bases, NODES, node, NODE_BYTES)


@kernel_inline
def _take_node(bases: Integers, counters: Integers) -> int:
    node = counters[FREE_NODE]
    if node:
        counters[FREE_NODE] = load32(_node(node, bases))
        counters[NODES_FREE] -= 1
        return int(node)
    node = counters[NODES_USED]
    counters[NODES_USED] += 1
    return int(node)


@kernel_inline
def _give_node(node: int, bases: Integers, counters: Integers) -> None:
    store32(_node(node, bases), counters[FREE_NODE])
    counters[FREE_NODE] = node
    counters[NODES_FREE] += 1


@kernel_inline
def new_crowd(bases: Integers, counters: Integers) -> int:
    """Return the value of a new, empty crowd; the caller ensures that there is a node."""
    header = _take_node(bases, counters)
    address = _node(header, bases)
    store32(address + _SIZE, 0)
    store32(address + _ROOT, 0)
    return CROWD + header


@kernel_inline
def crowd_size(crowd: int, bases: Integers) -> int:
    """Return the number of entries of a crowd."""
    return load32(_node(crowd - CROWD, bases) + _SIZE)


@kernel_inline
def crowd_start(crowd: int, bases: Integers, stack: Integers) -> int:
    """Put the path to the first entry into stack: int64[STACK]; return its length."""
    return _descend(load32(_node(crowd - CROWD, bases) + _ROOT), 0, bases, stack)


@kernel_inline
def _descend(node: int, depth: int, bases: Integers, stack: Integers) -> int:
    while node and depth < STACK:
        stack[depth] = node
        depth += 1
        node = load32(_node(node, bases) + _LEFT)
    return depth


@kernel_inline
def crowd_has(crowd: int, number: int, bases: Integers) -> bool:
    """Return whether a row number is in a crowd."""
    node = load32(_node(crowd - CROWD, bases) + _ROOT)
    while node:
        address = _node(node, bases)
        present = load32(address + _NUMBER)
        if present == number:
            return True
        node = load32(address + (_LEFT if number < present else _RIGHT))
    return False


@kernel_inline
def crowd_add(crowd: int, number: int, bases: Integers, counters: Integers) -> None:
    """Add a number that is not in a crowd; the caller ensures that there is a node."""
    header = _node(crowd - CROWD, bases)
    store32(header + _SIZE, load32(header + _SIZE) + 1)
    rank = _priority(number)
    link = header + _ROOT
    node = load32(link)
    while node:
        address = _node(node, bases)
        present = load32(address + _NUMBER)
        if _priority(present) < rank:
            break
        link = address + (_LEFT if number < present else _RIGHT)
        node = load32(link)
    fresh = _take_node(bases, counters)
    store32(link, fresh)
    address = _node(fresh, bases)
    store32(address + _NUMBER, number)
    smaller, larger = address + _LEFT, address + _RIGHT
    while node:
        below = _node(node, bases)
        if load32(below + _NUMBER) < number:
            store32(smaller, node)
            smaller = below + _RIGHT
            node = load32(smaller)
        else:
            store32(larger, node)
            larger = below + _LEFT
            node = load32(larger)
    store32(smaller, 0)
    store32(larger, 0)


@kernel_inline
def crowd_remove(crowd: int, number: int, bases: Integers, counters: Integers) -> bool:
    """Remove a row number from a crowd; return False if it is not there."""
    header = _node(crowd - CROWD, bases)
    link = header + _ROOT
    node = load32(link)
    while node:
        address = _node(node, bases)
        present = load32(address + _NUMBER)
        if present == number:
            break
        link = address + (_LEFT if number < present else _RIGHT)
        node = load32(link)
    if node == 0:
        return False
    address = _node(node, bases)
    left, right = load32(address + _LEFT), load32(address + _RIGHT)
    while left and right:
        one, other = _node(left, bases), _node(right, bases)
        if _priority(load32(one + _NUMBER)) >= _priority(load32(other + _NUMBER)):
            store32(link, left)
            link = one + _RIGHT
            left = load32(link)
        else:
            store32(link, right)
            link = other + _LEFT
            right = load32(link)
    store32(link, left + right)  # one of them is 0
    _give_node(node, bases, counters)
    store32(header + _SIZE, load32(header + _SIZE) - 1)
    return True


@kernel_inline
def only_number(crowd: int, bases: Integers) -> int:
    """Return the number of a crowd of one entry."""
    return load32(_node(load32(_node(crowd - CROWD, bases) + _ROOT), bases) + _NUMBER)


@kernel_inline
def end_crowd(crowd: int, bases: Integers, counters: Integers) -> None:
    """Free the nodes of a crowd of one entry."""
    header = crowd - CROWD
    _give_node(load32(_node(header, bases) + _ROOT), bases, counters)
    _give_node(header, bases, counters)


@kernel_inline
def next_number(depth: int, bases: Integers, stack: Integers) -> int:
    """Return the number at the end of a path from `crowd_start`, the smallest that was not returned yet."""
    return load32(_node(stack[depth - 1], bases) + _NUMBER)


@kernel_inline
def step(depth: int, bases: Integers, stack: Integers) -> int:
    """Advance a path to the next entry of its crowd; return its length, 0 after the last."""
    node = load32(_node(stack[depth - 1], bases) + _RIGHT)
    return _descend(node, depth - 1, bases, stack)
