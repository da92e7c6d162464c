"""Which pairs a person should be asked about: those that a rule is least sure of, and no two that teach the same.

Margin: how far a pair is from the other side of the rule. A row of the table holds a pair by its weakest bound, the
rule by its strongest row; so the margin is the largest, over the rows, of the smallest slack, at least 0 exactly where
the rule says match. Shares count as they are; counts, ratios and letters are brought to about the same scale.

How: candidates by the size of their margin, in turn from both sides of the rule; a page, and a group of pages that
the rule calls copies of each other, is shown once; of a pair of hosts a second pair comes after every pair of hosts had
its first. Equal margins are ordered by the seed.

Invariant: a choice of n pairs begins with the choice of fewer, so asking for more goes on where the last run ended.
Source: uncertainty sampling; Lewis and Gale, "A sequential algorithm for training text classifiers", SIGIR 1994.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.rules.match_row import UPPER_BOUNDS, MatchRow
from dedup_service.core.rules.rule import BITS, DistanceBound, MatchRule
from dedup_service.core.verdict import Distance

__all__ = ["CandidatePair", "PairGroups", "informative_pairs", "margin"]

SCALE = {
    "min_letters": 160.0,
    "missing_numbers": 8.0,
    "length_ratio": 2.0,
    "words_distance": 64.0,
    "body_distance": 64.0,
}
"""What weighs as much as a whole share; every other bound is a share."""

Row = tuple["CandidatePair", tuple[int, int]]
"""A pair and the groups of its pages."""

FAR = -1.0


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two pages by their places in the crawl, the earlier one first.

    margin: see the module. hosts: of both, in order of their names.
    """

    a: int
    b: int
    margin: float
    hosts: tuple[str, str]


def margin(rule: MatchRule, likeness: Similarity) -> float:
    """Return how far a pair is inside (at least 0) or outside (below 0) of what `rule` calls a match.

    A rule without a table is asked by distance, in shares of 64 bits; -1 where it cannot be asked.
    """
    if rule.verified:
        return max(_row_margin(row, likeness) for row in rule.verified) + 0.0  # of -0.0 and 0.0 make one
    return max((_near_margin(near, likeness.distance) for near in rule.conditions), default=FAR)


def _row_margin(row: MatchRow, likeness: Similarity) -> float:
    slacks: list[float] = []
    for name, bound in row.to_dict().items():
        if name != "name":
            slack = getattr(likeness, name) - bound
            slacks.append((-slack if name in UPPER_BOUNDS else slack) / SCALE.get(name, 1.0))
    return max(FAR, min(slacks))


def _near_margin(near: DistanceBound, distance: Distance) -> float:
    slacks = []
    for bound, bits in ((near.words, distance.words), (near.body, distance.body)):
        if bound is not None:
            slacks.append(FAR if bits is None else (bound - bits) / BITS)
    return max(FAR, min(slacks))


class PairGroups:
    """Pages that pairs join: each group is named by the smallest of its numbers."""

    def __init__(self) -> None:
        self._up: dict[int, int] = {}

    def group_of(self, page: int) -> int:
        """Return the name of the page's group: the page itself where nothing joined it."""
        while (up := self._up.get(page, page)) != page:
            self._up[page] = page = self._up.get(up, up)
        return page

    def join(self, one: int, other: int) -> None:
        """Make one group of two."""
        minimum, maximum = sorted((self.group_of(one), self.group_of(other)))
        if minimum != maximum:
            self._up[maximum] = minimum


def informative_pairs(
    pairs: Sequence[CandidatePair], groups: PairGroups, maximum: int, seed: int, *, at_random: bool = False
) -> list[CandidatePair]:
    """Return at most `maximum` of `pairs` to ask about, in the order to ask.

    groups: of pages that the rule joins. at_random: in an order that the seed alone gives, so that what people say of
    them holds for the candidates at large.
    """
    chances = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    order = sorted(zip(pairs, chances, strict=True), key=lambda row: (0.0 if at_random else abs(row[0].margin), row[1]))
    rows = [(pair, (groups.group_of(pair.a), groups.group_of(pair.b))) for pair, _ in order]
    shown: set[int] = set()
    inside = _one_of_each([row for row in rows if row[0].margin >= 0], shown)
    outside = _one_of_each([row for row in rows if row[0].margin < 0], shown)
    return list(islice(_in_turn((inside, outside)), maximum))


def _one_of_each(rows: Sequence[Row], shown: set[int]) -> Iterator[CandidatePair]:
    """Yield pairs none of whose groups was shown yet, in rounds: of each pair of hosts one a round."""
    waiting: dict[tuple[str, str], deque[int]] = {}
    for at, (pair, _) in enumerate(rows):
        waiting.setdefault(pair.hosts, deque()).append(at)
    heap = [(0, queue.popleft(), hosts) for hosts, queue in waiting.items()]
    heapify(heap)
    while heap:
        turn, at, hosts = heappop(heap)
        pair, groups = rows[at]
        fresh = shown.isdisjoint(groups)
        if fresh:
            shown.update(groups)
            yield pair
        if waiting[hosts]:
            heappush(heap, (turn + fresh, waiting[hosts].popleft(), hosts))


def _in_turn(sides: Sequence[Iterator[CandidatePair]]) -> Iterator[CandidatePair]:
    """Yield one of each in turn; what one side yields is settled before the next is asked."""
    open_sides = deque(sides)
    while open_sides:
        side = open_sides.popleft()
        pair = next(side, None)
        if pair is not None:
            yield pair
            open_sides.append(side)
