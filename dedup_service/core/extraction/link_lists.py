"""Find lists of links and empty elements from the numbers of a tree, one row an element.

Each element sums up what is inside it: characters of text, characters of link text, links, and the longest run of
text outside links. Rows are in document order, so the children of an element follow it: one loop from the last row
to the first adds each element to its parent. Elements nested deeper than MAX_DEPTH count as text of the one above
them.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating

LINK_SHARE = 0.5
FARM_SHARE = 0.75
SENTENCE_LENGTH = 40
MIN_LINKS = 2
MAX_DEPTH = 200
# Kinds of elements: of an element that may be a list of links, that stays if it is empty, that is a link.
BLOCK, SEPARATOR, LINK = 1, 2, 4
Numbers = npt.NDArray[np.int64]


@kernel
def removable(children: Numbers, kinds: Numbers, before: Numbers, after: Numbers) -> Numbers:
    """Return the rows of the outermost elements to remove: int64[m], ascending.

    All: int64[n], in document order, the root first. children: elements directly inside. kinds: sums of BLOCK,
    SEPARATOR and LINK. before, after: characters of the text before the first child, and behind the end tag.
    """
    size = len(children)
    parents, depths = _parents(children)
    texts, runs = before.copy(), before.copy()
    linked, links = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    removed = np.zeros(size, dtype=np.bool_)
    for row in range(size - 1, 0, -1):
        if depths[row] > MAX_DEPTH:
            linked[row], links[row], runs[row] = 0, 0, texts[row]
        else:
            if kinds[row] & LINK:
                linked[row], links[row], runs[row] = texts[row], texts[row] > 0, 0
            removed[row] = _is_removable(kinds[row], texts[row], linked[row], links[row], runs[row])
        parent = parents[row]
        texts[parent] += texts[row] + after[row]
        linked[parent] += linked[row]
        links[parent] += links[row]
        runs[parent] = max(runs[parent], runs[row], after[row])
    return _outermost(removed, parents)


@kernel_inline_allocating
def _parents(children: Numbers) -> tuple[Numbers, Numbers]:
    """Return the row of each element's parent (of the root: 0) and the number of elements around it."""
    size = len(children)
    parents, depths = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    left = children.copy()
    parent = 0
    for row in range(1, size):
        while left[parent] == 0 and parent > 0:
            parent = parents[parent]
        left[parent] -= 1
        parents[row], depths[row] = parent, depths[parent] + 1
        parent = row
    return parents, depths


@kernel_inline
def _is_removable(kind: int, text: int, linked: int, links: int, run: int) -> bool:
    """Whether an element is empty, or is a list of links."""
    if text == 0:
        return not kind & SEPARATOR
    if links < MIN_LINKS or not kind & BLOCK:
        return False
    return linked > (LINK_SHARE if run < SENTENCE_LENGTH else FARM_SHARE) * text


@kernel_inline_allocating
def _outermost(removed: npt.NDArray[np.bool_], parents: Numbers) -> Numbers:
    """Return the rows that are removed and have no removed element around them."""
    rows = np.empty(len(parents), dtype=np.int64)
    found = 0
    for row in range(1, len(parents)):
        if removed[parents[row]]:
            removed[row] = True
        elif removed[row]:
            rows[found] = row
            found += 1
    return rows[:found]
