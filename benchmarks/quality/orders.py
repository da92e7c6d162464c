"""Whether a verdict depends on the order of the two pages: decided in both orders, on candidates and labelled pairs.

Candidates are PAIRS random pairs of all in the stream (a shared key, or a distance of at most 3 in a channel).
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.quality.edges import Edges, edges_sharing, edges_within
from benchmarks.quality.systems import pairs_of_task
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.evidence.keys import LEVELS, unpacked_keys
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.interfaces.cli.commands.pairs import Comparer

PAIRS = 100_000


def compute(workspace: Workspace) -> dict[str, tuple[int, int]]:
    """Return, by set of pairs, the number of pairs and of verdicts that differ in the other order."""
    pages = workspace.prepared("stream")
    found = candidate_edges(workspace, pages)
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(found))[:PAIRS])
    pairs = list(zip(found.later[drawn].tolist(), found.earlier[drawn].tolist(), strict=True))
    orders = {"candidates of the stream": _orders(pages, pairs)}
    for task in workspace.corpora.labelled:
        _, one, other = pairs_of_task(workspace, task)
        orders[task] = _orders(workspace.prepared(task), list(zip(one.tolist(), other.tolist(), strict=True)))
    return orders


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
    keys = [[part[0] for part in unpacked_keys(page.keys, LEVELS) if part[0]] for page in pages]
    owners = np.repeat(np.arange(len(keys)), [len(values) for values in keys])
    return edges_sharing(owners, np.array([key for values in keys for key in values], np.uint64))


def _orders(pages: Sequence[PreparedPage], pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of pairs, and of those whose verdict differs in the other order."""
    comparer = Comparer(PROFILES[DEFAULT_PROFILE], "benchmark")
    differing = 0
    for one, other in tracked(pairs, "both orders", len(pairs)):
        a, b = pages[one], pages[other]
        differing += _flagged(comparer, a, b) != _flagged(comparer, b, a)
    return len(pairs), differing


def _flagged(comparer: Comparer, a: PreparedPage, b: PreparedPage) -> bool:
    return comparer.compare(a, b)["verdict"] in {"duplicate", "unchanged", "updated"}
