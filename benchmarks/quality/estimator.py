"""Error of the sketch's Jaccard similarity, and whether a verdict depends on the order of the two pages.

Data: PAIRS random pairs of all candidates in the stream (a shared key, or a distance of at most 3 in a
channel). Symmetry is checked on these and on every labelled pair: the decision is made in both orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.quality.edges import Edges, edges_sharing, edges_within
from benchmarks.quality.systems import pairs_of_task
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evidence.keys import LEVELS, unpacked_keys
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.sketch import estimated_jaccard
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.interfaces.cli.commands.pairs import Comparer, NoNames

PAIRS = 100_000
LENGTHS = (0, 160, 320, 640, 1280, 2560, 1 << 62)
"""Bounds of the length classes: letters of the shorter page."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Exact and estimated similarity float64[n] of n pairs, and letters of the shorter page int64[n].

    candidates: number of pairs from which n were drawn. orders: by set of pairs, (pairs, verdicts that
    differ).
    """

    letters: npt.NDArray[np.int64]
    exact: npt.NDArray[np.float64]
    estimated: npt.NDArray[np.float64]
    candidates: int
    orders: dict[str, tuple[int, int]]


def compute(workspace: Workspace) -> Estimates:
    """Return estimates and exact values of PAIRS candidate pairs, and the counts of `Estimates.orders`."""
    pages = workspace.prepared("stream")
    found = candidate_edges(workspace, pages)
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(found))[:PAIRS])
    later, earlier = found.later[drawn], found.earlier[drawn]
    evidence = [Evidence(page.evidence) for page in pages]
    sketches = [item.sketch for item in evidence]
    pairs = list(zip(later.tolist(), earlier.tolist(), strict=True))
    letters = np.array([item.letters for item in evidence])
    orders = {"candidates of the stream": _orders(pages, pairs)}
    for task in workspace.corpora.labelled:
        _, one, other = pairs_of_task(workspace, task)
        orders[task] = _orders(workspace.prepared(task), list(zip(one.tolist(), other.tolist(), strict=True)))
    return Estimates(
        np.minimum(letters[later], letters[earlier]),
        workspace.shingles("stream").jaccard(later, earlier),
        np.array([estimated_jaccard(sketches[a], sketches[b]) for a, b in pairs]),
        len(found),
        orders,
    )


def candidate_edges(workspace: Workspace, pages: Sequence[PreparedPage]) -> Edges:
    """Return all pairs of pages with text that share a key or are within 3 bits in a channel."""
    channels = workspace.channels("stream")
    judged = np.array([page.reason is None for page in pages])
    parts = [
        key_edges(pages),
        edges_within(channels.words, channels.has_words & judged, 3),
        edges_within(channels.body, channels.has_body & judged, 3),
    ]
    size = len(pages)
    joined = np.unique(np.concatenate([part.later * size + part.earlier for part in parts]))
    return Edges(joined // size, joined % size, np.zeros(len(joined)))


def key_edges(pages: Sequence[PreparedPage]) -> Edges:
    """Return all pairs of pages that share the smallest key of a part."""
    smallest = [unpacked_keys(page.keys, LEVELS)[:, 0] for page in pages]
    keys = [values[values != 0] for values in smallest]
    owners = np.repeat(np.arange(len(keys)), [len(values) for values in keys])
    return edges_sharing(owners, np.array([key for values in keys for key in values], np.uint64))


def _orders(pages: Sequence[PreparedPage], pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of pairs, and of those whose verdict differs in the other order."""
    comparer = Comparer(Decider(PROFILES[DEFAULT_PROFILE], "benchmark", NoNames()))
    differing = 0
    for one, other in tracked(pairs, "both orders", len(pairs)):
        a, b = pages[one], pages[other]
        differing += _flagged(comparer, a, b) != _flagged(comparer, b, a)
    return len(pairs), differing


def _flagged(comparer: Comparer, a: PreparedPage, b: PreparedPage) -> bool:
    return comparer.compare(a, b)["verdict"] in {"duplicate", "unchanged", "updated"}
